public import SystemPackage

extension EmbeddedPostgres {
    /// How much room there is on the disk of the server.
    public struct Space: Sendable, Hashable {
        /// A directory of that disk.
        public let directory: FilePath
        /// Bytes that anybody may take.
        public let freeBytes: Int64
        /// Bytes that are kept for the server.
        public let keptBytes: Int64
        /// Bytes of those which are free that the server is to have: what is kept for it was given to it, or to somebody who was faster.
        public let owedBytes: Int64
        /// Files that anybody may make; `nil` where they are not counted.
        public let freeFiles: Int64?

        /// What the server lacks; `nil` if it has room. One that lacked room has it again as soon as it could be started there, which is later than it
        /// is in danger: so what is told of it does not flicker.
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
