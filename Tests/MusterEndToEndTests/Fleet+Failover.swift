import MusterTestSupport

extension Fleet {
    /// Runs a test with coordinators whose connection string names the server of `primary`, and then those of its copies.
    ///
    /// - Parameters:
    ///   - primary: A cluster with `PostgresCopy.sourceSettings`.
    ///   - timeToLive: Of the workers' sessions.
    static func run(
        on primary: TestPostgres,
        followedBy copies: [PostgresCopy],
        coordinators: Int = 1,
        timeToLive: String = "5s",
        _ body: (Fleet) async throws -> Void
    ) async throws {
        let first = await primary.socketDirectory
        let hosts = ([first] + copies.map { $0.socketDirectory }).joined(separator: ",")
        try await run(on: primary, coordinators: 0, timeToLive: timeToLive) { fleet in
            let all = "\(fleet.conninfo) host=\(hosts) target_session_attrs=read-write"
            for _ in 0..<coordinators { try await fleet.startCoordinator(database: all) }
            try await body(fleet)
        }
    }

    /// The number that a query finds in the fleet's database, on a server that is named by the directory of its socket.
    func number(_ query: String, at host: String) async throws -> Int64 {
        let text = try await postgres.execute(query, conninfo: "\(conninfo) host=\(host)")
        guard let number = Int64(text.filter { !$0.isNewline }) else { throw Unexpected("\(text) is no number") }
        return number
    }

    /// Adds a sealed group by the command, again until a coordinator has its database (exit code 3).
    func add(_ group: String, _ files: [WantedFile]) async throws {
        let list = files.map { $0.url + "\n" }.joined()
        try await eventually(
            "the addition of \(group)",
            isTrue: {
                let command = try await self.muster(["add", group, "-i", "-"], expecting: nil, input: .text(list))
                guard command.exit != .exited(3) else { return false }
                guard command.exit == .exited(0) else { throw Unexpected(command.standardError) }
                return true
            })
    }

    /// Waits until a worker has opened its second session.
    nonisolated func waitForNewSession(of worker: TestProcess) async throws {
        try await worker.waitForOutput(in: .standardError) { text in
            text.split(separator: "\n").count { $0.contains("Session opened") } >= 2
        }
    }
}
