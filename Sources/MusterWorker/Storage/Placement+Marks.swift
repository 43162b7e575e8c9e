import MusterCore

/// Marks that tell which task a file belongs to (adr/0014).
extension Placement {
    /// Marks a file as the task's, before it is put in place. If that fails, the file is put in place all the same: a
    /// purge just would not find it if the task were cancelled at this moment. Returns whether the mark is there now.
    @discardableResult
    func mark(_ file: OpenPart, _ order: FinalizeOrder, isAdopted: Bool = false) -> Bool {
        guard var mark = order.mark else { return false }
        mark.isAdopted = isAdopted
        return mark.write(to: file.descriptor, path: order.path)
    }

    /// Whether a file, as it was when it was opened, has the mark that `mark` writes.
    func isMarked(_ file: OpenPart, _ order: FinalizeOrder, isAdopted: Bool = false) -> Bool {
        guard let mark = order.mark else { return true }
        guard let found = FileMark.read(file.descriptor, path: order.path) else { return false }
        return found.isOf(mark, file.status) && found.validators == mark.validators && found.isAdopted == isAdopted
    }

    /// Whether the task itself put a file there, and the file is unchanged since.
    func isOwn(_ file: OpenPart, _ order: FinalizeOrder) -> Bool {
        guard let owner = order.mark?.owner, let found = FileMark.read(file.descriptor, path: order.path) else {
            return false
        }
        return found.owner == owner && found.isIntact(file.status)
    }

    /// Whether a file is marked as another task's under the path of the order; files at the numbered names of that path
    /// use the same attribute.
    func isAnothers(_ file: OpenPart, _ order: FinalizeOrder) -> Bool {
        guard let mark = order.mark, let found = FileMark.read(file.descriptor, path: order.path) else { return false }
        return found.owner != mark.owner
    }

    /// Whether the task itself put the file at a path there.
    func isOwn(at spot: Spot, _ order: FinalizeOrder) throws(StorageError) -> Bool {
        guard case .file(let file) = try openDestination(at: spot) else { return false }
        return isOwn(file, order)
    }

    /// The outcome if the file at a path has other content but is the task's own; otherwise `nil`.
    func overtaken(at spot: Spot, _ order: FinalizeOrder) throws(StorageError) -> Settled? {
        guard try isOwn(at: spot, order) else { return nil }
        return .outcome(.overtaken("another content came for \(spot.path) before, under a lease that was lost"))
    }

    /// Marks a staged file that is about to replace another one as adopted, so that it is not deleted with its task: the
    /// replaced file can't come back, and a cancel must not leave the path empty.
    func markAsReplacement(_ name: CandidateName, _ order: FinalizeOrder) throws(SystemError) {
        guard var mark = order.mark else { return }
        mark.isAdopted = true
        let (file, _) = try own.file(name.string, creation: .never)
        _ = mark.write(to: file, path: order.path)
    }

    /// Marks a file that stands at a path as the task's. Returns `nil`, or why it can't be the task's.
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

    /// Whether the file there is marked as another installation's: it may count as the task's, and is never changed (I18).
    func isStrangers(at spot: Spot, _ order: FinalizeOrder) throws(StorageError) -> Bool {
        guard let mark = order.mark, case .file(let file) = try openDestination(at: spot) else { return false }
        return mark.isStrangers(file.descriptor, path: order.path)
    }

    /// Whether the file there is an older version of the task's own content, put there late by a worker that had lost its lease.
    func isOutdated(at spot: Spot, _ order: FinalizeOrder) throws(StorageError) -> Bool {
        guard let mark = order.mark, order.version > 1, case .file(let file) = try openDestination(at: spot),
            let found = FileMark.read(file.descriptor, path: order.path)
        else { return false }
        return found.owner == mark.owner && found.isIntact(file.status) && found.version < order.version
    }
}
