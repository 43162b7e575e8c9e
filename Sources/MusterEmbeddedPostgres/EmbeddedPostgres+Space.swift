public import SystemPackage

extension EmbeddedPostgres {
    /// How much room there is on the disk of the server.
    public struct Space: Sendable, Hashable {
        /// A directory of that disk.
        public let directory: FilePath
        /// Bytes that any process may take.
        public let freeBytes: Int64
        /// Bytes that are kept for the server.
        public let keptBytes: Int64
        /// Free bytes that the server is to have: they were kept for it, and given back to it or to a process that was faster.
        public let owedBytes: Int64
        /// Files that any process may make; `nil` where they are not counted.
        public let freeFiles: Int64?

        /// What the server lacks; `nil` if it has room. A server that lacked room has it again only when it could be
        /// started there, which takes more than the bound of danger. So the reported state does not flicker.
        public func lack(after before: EmbeddedPostgresError?) -> EmbeddedPostgresError? {
            if let freeFiles, freeFiles < SpaceReserve.leastFiles {
                return .filesFull(directory: directory, neededFiles: SpaceReserve.leastFiles, freeFiles: freeFiles)
            }
            let bound = before == nil ? SpaceReserve.dangerBytes : SpaceReserve.leastBytes
            guard keptBytes == 0, freeBytes < bound else { return nil }
            return .diskFull(directory: directory, neededBytes: SpaceReserve.leastBytes, freeBytes: freeBytes)
        }
    }
}
