import FoundationEssentials
import Glibc
import MusterAPI
import MusterCore
import MusterTestSupport
import SystemPackage
import Testing

extension EndToEnd {
    /// Paths that pass to other tasks while a worker is stopped (I17, F2).
    @Suite struct Paths {
        /// Files at the paths `f/0`, `f/1`, …, and the tasks that fetch them.
        private static func tasks(_ files: [WantedFile]) -> [TaskRequest] {
            files.enumerated().map { TaskRequest(urls: [$1.url], path: "f/\($0)") }
        }

        private static func submit(_ group: String, _ files: [WantedFile], to fleet: Fleet) async throws {
            var request = GroupRequest(name: group, sealed: true, tasks: tasks(files))
            request.policy = TransferPolicy()
            request.policy?.ifExists = .replace
            _ = try await fleet.client().createGroup(request)
        }

        @Test func workerThatIsStoppedInTheMiddleOfItsFilesChangesNoneOfTheNextTasks() async throws {
            let origin = try await ScriptedOrigin.start()
            let sizes = Array(repeating: Int64.kibibytes(200), count: 60)
            let old = origin.serveFiles("old", sizes: sizes)
            let new = origin.serveFiles("new", sizes: sizes, seed: 7)
            try await Fleet.run(timeToLive: "3s") { fleet in
                let sleeper = try await fleet.startWorker("sleeper", slots: 16)
                try await Self.submit("a", old, to: fleet)
                try await eventually("a file of the first group") {
                    let path = fleet.sink.appending("f").string
                    return try
                        !((FileManager.default.fileExists(atPath: path)
                        ? FileManager.default.contentsOfDirectory(atPath: path) : [])
                        .isEmpty)
                }
                try sleeper.signal(SIGSTOP)
                _ = try await fleet.client().apply(.cancel, to: "a")
                try await fleet.startWorker("second", slots: 16)
                try await Self.submit("b", new, to: fleet)
                try await fleet.waitForEnd(of: "b")
                #expect(try await fleet.client().group("b").state == .succeeded)

                try sleeper.signal(SIGCONT)
                try await sleeper.waitForLine(containing: "The session is over", in: .standardError)
                try await fleet.waitForWorkers(["sleeper", "second"])
                try await fleet.waitForNoParts()
                for (index, file) in new.enumerated() {
                    let path = fleet.sink.appending("f").appending("\(index)")
                    #expect(try FileDigest.sha256(path) == file.sha256, "f/\(index)")
                }
            }
        }
    }
}
