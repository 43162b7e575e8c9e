import MusterCore
import Synchronization

/// What a purge lease asks for: to delete everything of a task, or of its content up to some version.
struct PurgeOrder: Hashable, Sendable {
    /// The task whose parts are deleted.
    var task: TaskID
    /// The last content version whose parts and copies are deleted; the parts of later versions are being written.
    var version: Int32 = .max
    /// The task's file, if it is to be deleted too.
    var file: File?

    /// The file of a task that is over.
    struct File: Hashable, Sendable {
        /// Its path below the sink, if it was put in place.
        var path: DestinationPath
        /// The size of the file when Muster put it in place, if the task has succeeded; a file of another size is no
        /// longer Muster's and stays. `nil` if it is unknown whether the file exists; then only a file that is marked as
        /// the task's is deleted.
        var size: Int64?
        /// The owner whose mark identifies the file; `nil` if unknown, and then no file is identified by its mark.
        var owner: FileMark.Owner?
    }
}

extension SinkDirectory {
    /// Carries out many orders in one pass over the parts. Returns for each order how it ended: what became of the file
    /// if the task had succeeded, otherwise `nil`. Throws if the sink is in trouble. Blocks.
    @discardableResult
    func purge(_ orders: [PurgeOrder]) throws(StorageError) -> [Result<RemovedFile?, StorageError>] {
        try removing.withLock { _ throws(StorageError) in try purgeAlone(orders) }
    }

    private func purgeAlone(_ orders: [PurgeOrder]) throws(StorageError) -> [Result<RemovedFile?, StorageError>] {
        // Delete the parts first: a part without a name can't be put in place afterwards.
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
