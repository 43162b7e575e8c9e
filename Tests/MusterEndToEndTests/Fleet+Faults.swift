import Glibc
import MusterTestSupport

extension Fleet {
    /// Ends the only coordinator, these workers and the database at one moment, as a power cut does (F20), and starts the
    /// database and the coordinator again.
    func cutPower(to workers: [TestProcess]) async throws {
        guard let coordinator = coordinators.first, let server = await postgres.processID else {
            throw Unexpected("something is dead already")
        }
        let doomed = [coordinator.process] + workers
        // Stopped first, so that none of them sees another one die.
        for process in doomed { try process.signal(SIGSTOP) }
        let backends = ProcessTree.descendants(of: server)
        for process in backends + [server] { endAtOnce(process) }
        for process in doomed { try await kill(process) }
        for process in backends + [server] { try await ProcessTree.waitForEnd(of: process) }

        await postgres.stop(.immediate)
        try await postgres.start()
        try await startCoordinator(port: coordinator.port)
    }
}

/// The system's `kill`, which `Fleet.kill` hides in the fleet.
private func endAtOnce(_ process: pid_t) { _ = kill(process, SIGKILL) }
