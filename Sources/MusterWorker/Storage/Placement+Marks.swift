import MusterCore

/// What files say about whose they are (adr/0014).
extension Placement {
    /// Marks a file as the task's, before it is put in place. Where that can't be done the file is put there all the same: it only would not be
    /// found if the task were cancelled in this moment.
    func mark(_ file: OpenPart, _ order: FinalizeOrder, isAdopted: Bool = false) {
        guard var mark = order.mark else { return }
        mark.isAdopted = isAdopted
        _ = mark.write(to: file.descriptor, path: order.path)
    }

    /// Whether the task put a file there itself, and nobody has written to it since.
    func isOwn(_ file: OpenPart, _ order: FinalizeOrder) -> Bool {
        guard let owner = order.mark?.owner, let found = FileMark.read(file.descriptor, path: order.path) else {
            return false
        }
        return found.owner == owner && found.isIntact(file.status)
    }

    /// Whether a file says that it was another task's under the path of the order: the names that follow that path have the same mark.
    func isAnothers(_ file: OpenPart, _ order: FinalizeOrder) -> Bool {
        guard let mark = order.mark, let found = FileMark.read(file.descriptor, path: order.path) else { return false }
        return found.owner != mark.owner
    }

    /// Whether what stands at a path was put there by the task itself.
    func isOwn(at spot: Spot, _ order: FinalizeOrder) throws(StorageError) -> Bool {
        guard case .file(let file) = try openDestination(at: spot) else { return false }
        return isOwn(file, order)
    }

    /// What follows where another content stands at a path, if that is the task's own.
    func overtaken(at spot: Spot, _ order: FinalizeOrder) throws(StorageError) -> Settled? {
        guard try isOwn(at: spot, order) else { return nil }
        return .outcome(.overtaken("another content came for \(spot.path) before, under a lease that was lost"))
    }

    /// Says of a staged file that is about to replace another one that it does not go with its task: what it replaces can't come back, and a
    /// cancel must not leave the path empty.
    func markAsReplacement(_ name: CandidateName, _ order: FinalizeOrder) throws(SystemError) {
        guard var mark = order.mark else { return }
        mark.isAdopted = true
        let (file, _) = try own.file(name.string, creation: .never)
        _ = mark.write(to: file, path: order.path)
    }

    /// Marks a file that stands at a path as the task's. Returns what is the matter with it otherwise.
    func adopt(_ file: OpenPart, at spot: Spot, _ order: FinalizeOrder) throws(StorageError) -> Examined? {
        guard let mark = order.mark else { return nil }
        do {
            switch try mark.adopt(file.descriptor, file.status.identity, at: spot.place, path: order.path) {
            case .marked: return nil
            case .gone: return .gone
            case .refused: return .foreign("it is another task's, and can't be marked")
            }
        } catch {
            throw error.atDestination("looking at \(spot.path)")
        }
    }

    /// Whether what stands there says that it is another installation's: it may be counted, and is never changed (I18).
    func isStrangers(at spot: Spot, _ order: FinalizeOrder) throws(StorageError) -> Bool {
        guard let mark = order.mark, case .file(let file) = try openDestination(at: spot) else { return false }
        return mark.isStrangers(file.descriptor, path: order.path)
    }

    /// Whether what stands there is an older version of the task's own content: a worker that lost its lease was late.
    func isOutdated(at spot: Spot, _ order: FinalizeOrder) throws(StorageError) -> Bool {
        guard let mark = order.mark, order.version > 1, case .file(let file) = try openDestination(at: spot),
            let found = FileMark.read(file.descriptor, path: order.path)
        else { return false }
        return found.owner == mark.owner && found.isIntact(file.status) && found.version < order.version
    }
}
