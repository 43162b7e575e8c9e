import FoundationEssentials
import Glibc
import MusterAPI
import MusterCore
import MusterTestSupport
import SystemPackage
import Testing

extension EndToEnd {
    /// A file was put in place by a worker that can't report it, since the coordinator is stopped (I13, adr/0014).
    @Suite struct Cancels {
        /// What becomes of the worker before the coordinator wakes up.
        enum Fate: CaseIterable, Sendable {
            case lives
            case killed

            /// The time to live of the workers' sessions: short only where a worker has to be missed.
            var timeToLive: String {
                switch self {
                case .lives: "2m"
                case .killed: "3s"
                }
            }
        }

        private static func inPlace(_ fleet: Fleet, _ path: String) -> Bool {
            FileManager.default.fileExists(atPath: fleet.sink.appending(path).string)
        }

        /// Has a worker put a file in place without a chance to report it. Returns a client of another coordinator than the worker's.
        private static func place(
            _ fleet: Fleet, _ origin: ScriptedOrigin, _ file: WantedFile, _ fate: Fate
        ) async throws -> MusterClient {
            origin.hold("/\(file.path)", afterBytes: 100)
            let worker = try await fleet.startWorker("a")
            try await fleet.submit("g", [file])
            try await origin.waitForRequests("/\(file.path)", count: 1)
            let coordinator = await fleet.coordinators[0].process
            try coordinator.signal(SIGSTOP)
            origin.release("/\(file.path)")
            try await eventually("the file in its place") { inPlace(fleet, file.path) }
            if fate == .killed { try await fleet.kill(worker) }
            return try await fleet.client(of: [fleet.startCoordinator().url])
        }

        /// The worker's coordinator wakes up, and hears from the worker if it lives; otherwise another worker is started.
        private static func wake(_ fleet: Fleet, _ fate: Fate) async throws {
            try await fleet.coordinators[0].process.signal(SIGCONT)
            if fate == .killed { try await fleet.startWorker("b") }
        }

        @Test(arguments: Fate.allCases)
        func cancelLeavesNothingOfAFileThatWasNotReported(fate: Fate) async throws {
            let origin = try await ScriptedOrigin.start()
            let file = origin.serveFile("a.bin", size: .kibibytes(64))
            try await Fleet.run(timeToLive: fate.timeToLive) { fleet in
                let client = try await Self.place(fleet, origin, file, fate)
                #expect(try await client.apply(.cancel, to: "g").state == .cancelled)
                try await Self.wake(fleet, fate)
                try await eventually("the end of the file") { !Self.inPlace(fleet, file.path) }
                try await fleet.waitForNoParts()
                #expect(try await client.group("g").tasks.cancelled == 1)
            }
        }

        /// The same file is asked for again at once: it is there in the end, whatever remained to be deleted.
        @Test(arguments: Fate.allCases)
        func removalDoesNotSpoilANewGroupForTheSameFile(fate: Fate) async throws {
            let origin = try await ScriptedOrigin.start()
            let file = origin.serveFile("a.bin", size: .kibibytes(64))
            try await Fleet.run(timeToLive: fate.timeToLive) { fleet in
                let client = try await Self.place(fleet, origin, file, fate)
                try await client.removeGroup("g", files: .delete)
                _ = try await client.createGroup(GroupRequest(name: "g", sealed: true, tasks: [file.task]))
                try await Self.wake(fleet, fate)
                try await fleet.waitForEnd(of: "g")
                try await fleet.waitForNoParts()
                try await fleet.check("g", [file])
            }
        }
    }
}
