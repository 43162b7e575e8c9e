import Glibc
import MusterTestSupport

extension Fleet {
    /// Ends the coordinators, these workers and the database at one moment, as a power cut does (F20), and starts the database and the
    /// coordinators again.
    ///
    /// - Parameter database: The cluster; nil is that of the fleet.
    func cutPower(to workers: [TestProcess], database: TestPostgres? = nil) async throws {
        let database = database ?? postgres
        let old = coordinators
        guard !old.isEmpty, let server = await database.processID else { throw Unexpected("something is dead already") }
        let doomed = old.map(\.process) + workers
        // Stopped first, so that none of them sees another one die.
        for process in doomed { try process.signal(SIGSTOP) }
        let backends = ProcessTree.descendants(of: server)
        for process in backends + [server] { endAtOnce(process) }
        for process in doomed { try await kill(process) }
        for process in backends + [server] { try await ProcessTree.waitForEnd(of: process) }

        await database.stop(.immediate)
        try await database.start()
        for coordinator in old { try await startCoordinator(port: coordinator.port) }
    }
}

/// The system's `kill`, which `Fleet.kill` hides in the fleet.
private func endAtOnce(_ process: pid_t) { _ = kill(process, SIGKILL) }
