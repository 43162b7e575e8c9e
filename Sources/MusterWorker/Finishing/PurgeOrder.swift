import MusterCore

/// What a purge lease asks for: that nothing is left of a task, or of its content up to some version.
struct PurgeOrder: Hashable, Sendable {
    /// The task whose parts go.
    var task: TaskID
    /// The last content version whose parts and copies go; the parts of later ones are being written.
    var version: Int32 = .max
    /// Its file, if that shall go too.
    var file: File?

    /// The file of a task that is over.
    struct File: Hashable, Sendable {
        /// Where it stands below the sink, if it was put in place.
        var path: DestinationPath
        /// The size that Muster left it with, where the task has succeeded; a file of another size is somebody else's by now and stays.
        /// Otherwise nobody knows whether it is there, and only a file that is marked as the task's goes.
        var size: Int64?
        /// Whose marks it may carry; where that isn't known, no file is known by its mark.
        var owner: FileMark.Owner?
    }
}

extension SinkDirectory {
    /// Carries out many orders with one pass over the parts, and says of each how it ended: what became of the file of a task that had
    /// succeeded. Fails if the sink is in trouble. Blocks.
    @discardableResult
    func purge(_ orders: [PurgeOrder]) throws(StorageError) -> [Result<RemovedFile?, StorageError>] {
        // First the parts: what has no name any more can't be put in place behind our back.
        try purge(upTo: Dictionary(orders.map { ($0.task, $0.version) }, uniquingKeysWith: max))
        var results: [Result<RemovedFile?, StorageError>] = orders.map { _ in .success(nil) }
        guard orders.contains(where: { $0.file != nil }) else { return results }
        var removal = try FileRemoval(self)
        for (index, order) in orders.enumerated() {
            guard let file = order.file else { continue }
            do throws(StorageError) {
                results[index] = .success(try removal.remove(file, of: order))
            } catch {
                let error = judged(error)
                if error.parksSink || error.isPassing { throw error }
                results[index] = .failure(error)
            }
        }
        try removal.synchronize()
        return results
    }
}
