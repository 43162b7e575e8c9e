import MusterCore

/// What a purge lease asks for: that nothing is left of a task, or of its content up to some version.
struct PurgeOrder: Hashable, Sendable {
    /// The task whose parts go.
    var task: TaskID
    /// The last content version whose parts and copies go; the parts of later ones are being written.
    var version: Int32 = .max
    /// Its finished file, if that shall go too.
    var file: File?

    /// A finished file that was asked to be deleted.
    struct File: Hashable, Sendable {
        /// Where it stands below the sink.
        var path: DestinationPath
        /// The size that Muster left it with; a file of another size is somebody else's by now and stays.
        var size: Int64
    }
}

extension SinkDirectory {
    /// Carries out many orders with one pass over the parts. Blocks.
    func purge(_ orders: [PurgeOrder]) throws(StorageError) {
        try check()
        var walk = SinkWalk(self)
        for file in orders.lazy.compactMap(\.file) {
            do throws(StorageError) {
                try remove(file, &walk)
            } catch {
                // Where somebody put a link or closed the directory to us, the file that Muster left is not reached any
                // more; only a sink in trouble is worth another try.
                if error.parksSink { throw error }
            }
        }
        try purge(upTo: Dictionary(orders.map { ($0.task, $0.version) }, uniquingKeysWith: max))
    }

    private func remove(_ file: PurgeOrder.File, _ walk: inout SinkWalk) throws(StorageError) {
        guard let place = try walk.place(of: file.path, making: false) else { return }
        do throws(SystemError) {
            guard let status = try place.directory.status(of: place.name), status.kind == .file,
                status.size == file.size
            else { return }
            if try place.directory.remove(place.name) { try place.directory.descriptor.synchronize() }
        } catch {
            throw error.atDestination("deleting \(file.path)")
        }
    }
}
