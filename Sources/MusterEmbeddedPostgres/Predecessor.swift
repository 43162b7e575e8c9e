public import SystemPackage

extension EmbeddedPostgres {
    /// The server of an earlier process, which has to answer or to end before there can be another one.
    public struct Predecessor: Sendable, Hashable {
        /// Its process, or the processes that have outlived it, as far as they are known.
        public let processIDs: [Int32]
        /// Its processes, and the shells that supervise it, that are stopped, as by SIGSTOP.
        public let stoppedIDs: [Int32]
        /// The directory of its files.
        public let dataDirectory: FilePath
        /// The limit of the whole wait for it.
        public let limit: Duration

        /// A server that a start waits for.
        public init(processIDs: [Int32], stoppedIDs: [Int32] = [], dataDirectory: FilePath, limit: Duration) {
            self.processIDs = processIDs
            self.stoppedIDs = stoppedIDs
            self.dataDirectory = dataDirectory
            self.limit = limit
        }

        /// After how long a wait for it is reported: most servers have ended by then.
        static let telling: Duration = .seconds(4)
    }
}

extension EmbeddedPostgres.Predecessor: CustomStringConvertible {
    /// Names the server by its processes and its files.
    public var description: String {
        let processes = processIDs.isEmpty ? "of an unknown process" : Self.processes(processIDs)
        return "the PostgreSQL of an earlier run (\(processes), its files in \(dataDirectory))"
    }

    /// How the user can end the wait.
    public var help: String {
        let lossless = "nothing that was committed is lost"
        if !stoppedIDs.isEmpty {
            let (words, those) = (Self.words(stoppedIDs), stoppedIDs.count == 1 ? "it" : "them")
            return """
                stopped: \(Self.processes(stoppedIDs)); let \(those) go on (kill -CONT \(words)), or end \(those) (kill -KILL \(words)): \(lossless)
                """
        }
        guard !processIDs.isEmpty else { return "end it, or wait for it" }
        let words = Self.words(processIDs)
        return "let it go on if it was stopped (kill -CONT \(words)), or end it (kill -KILL \(words)): \(lossless)"
    }

    private static func words(_ processIDs: [Int32]) -> String { processIDs.map(String.init).joined(separator: " ") }

    private static func processes(_ processIDs: [Int32]) -> String {
        "process\(processIDs.count == 1 ? "" : "es") \(processIDs.map(String.init).joined(separator: ", "))"
    }
}

extension Launch {
    /// Runs `wait`, which may have to wait for the server of an earlier process, and reports a wait that is longer than
    /// `Predecessor.telling`.
    func tellingOfPredecessor<Value: Sendable>(
        _ location: ClusterLocation, _ account: ServerAccount, _ wait: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        try await withThrowingTaskGroup(of: Value?.self) { tasks in
            tasks.addTask { try await wait() }
            tasks.addTask {
                try await Task.sleep(for: EmbeddedPostgres.Predecessor.telling)
                onNews(.waiting(try await predecessor(of: location, account)))
                return nil
            }
            defer { tasks.cancelAll() }
            while let ended = try await tasks.next() {
                if let ended { return ended }
            }
            throw CancellationError()
        }
    }

    /// The server that is to end, or the processes that have outlived it.
    func predecessor(
        of location: ClusterLocation, _ account: ServerAccount
    ) async throws -> EmbeddedPostgres.Predecessor {
        let data = location.dataDirectory
        // A file that can't be read names no process, and the wait is reported all the same.
        let file = try? PostmasterFile.read(dataDirectory: data)
        let processIDs =
            if let file, try await file.isServer(of: data) { [file.processID] } else {
                try await ServerProcesses.working(in: data, as: account)
            }
        return EmbeddedPostgres.Predecessor(
            processIDs: processIDs, stoppedIDs: try await ServerProcesses.stopped(in: data, as: account),
            dataDirectory: data, limit: configuration.startLimit)
    }
}
