public import SystemPackage

extension EmbeddedPostgres {
    /// The server of an earlier process, which has to answer or to end before there can be another one.
    public struct Predecessor: Sendable, Hashable {
        /// Its process, as far as its data directory names one.
        public let processID: Int32?
        /// Its files.
        public let dataDirectory: FilePath
        /// How long it is waited for in all.
        public let limit: Duration

        /// A server that is waited for.
        public init(processID: Int32?, dataDirectory: FilePath, limit: Duration) {
            self.processID = processID
            self.dataDirectory = dataDirectory
            self.limit = limit
        }

        /// After how long a wait for it is told: most servers have ended by then.
        static let telling: Duration = .seconds(4)
    }
}

extension EmbeddedPostgres.Predecessor: CustomStringConvertible {
    /// Which one it is.
    public var description: String {
        "the PostgreSQL of an earlier run (\(processID.map { "process \($0)" } ?? "of an unknown process"), its files in \(dataDirectory))"
    }

    /// How a person can end the wait.
    public var help: String {
        guard let processID else { return "end it, or wait for it" }
        return """
            let it go on if it was stopped (kill -CONT \(processID)), or end it (kill -KILL \(processID)): nothing that was committed is lost
            """
    }
}

extension Launch {
    /// Does something that may have to wait for the server of an earlier process, and tells of that wait once it is no short one.
    func tellingOfPredecessor<Value: Sendable>(
        _ location: ClusterLocation, _ wait: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        try await withThrowingTaskGroup(of: Value?.self) { tasks in
            tasks.addTask { try await wait() }
            tasks.addTask {
                try await Task.sleep(for: EmbeddedPostgres.Predecessor.telling)
                onNews(.waiting(predecessor(of: location)))
                return nil
            }
            defer { tasks.cancelAll() }
            while let ended = try await tasks.next() {
                if let ended { return ended }
            }
            throw CancellationError()
        }
    }

    /// The server whose end is waited for.
    func predecessor(of location: ClusterLocation) -> EmbeddedPostgres.Predecessor {
        // A file that can't be read names nobody, and the wait is told all the same.
        let file = try? PostmasterFile.read(dataDirectory: location.dataDirectory)
        return EmbeddedPostgres.Predecessor(
            processID: file?.processID, dataDirectory: location.dataDirectory, limit: configuration.startLimit)
    }
}
