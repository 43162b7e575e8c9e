import FoundationEssentials
import MusterAPI
import MusterCore
import MusterTestSupport
import SystemPackage
import Testing

extension EndToEnd {
    /// A file that the sink has already is not fetched again: real processes, and an nginx whose log has the requests.
    @Suite(.enabled(if: NginxServer.isInstalled, "needs nginx")) struct ReuseTests {
        private static let size: Int64 = 64 << 20

        /// Runs a test with a file of 64 MiB that an nginx serves.
        private static func withNginx(
            limitRate: Int? = nil,
            _ body: (NginxServer, WantedFile, FilePath) async throws -> Void
        ) async throws {
            let root = try TemporaryDirectory()
            let content = ScriptedOrigin.Content.seeded(seed: 41, size: size)
            let path = root.path.appending("large.bin")
            try Data(content.allBytes).write(to: URL(filePath: path.string))
            // A modification date in the present second could stand for two contents.
            try FileManager.default.setAttributes(
                [.modificationDate: Date(timeIntervalSince1970: 1_577_836_800)], ofItemAtPath: path.string)
            let nginx = try await NginxServer.start(documentRoot: root.path, limitRate: limitRate)
            let file = WantedFile(path: "large.bin", url: "\(nginx.url)/large.bin", sha256: content.sha256())
            try await body(nginx, file, path)
            try await nginx.stop()
        }

        private static func submit(
            _ fleet: Fleet, _ group: String, _ file: WantedFile, reuse: Bool? = nil
        ) async throws -> WantedFile {
            let path = "\(group)/\(file.path)"
            var request = GroupRequest(
                name: group, sealed: true, tasks: [TaskRequest(urls: [file.url], path: path)])
            if let reuse {
                request.policy = TransferPolicy()
                request.policy?.reuse = reuse
            }
            _ = try await fleet.client().createGroup(request)
            return WantedFile(path: path, url: file.url, sha256: file.sha256)
        }

        /// Both files are what they should be, and the later one's group ended once.
        private static func check(_ fleet: Fleet, _ file: WantedFile, beside other: WantedFile) async throws {
            try await fleet.check(String(file.path.prefix { $0 != "/" }), [file])
            try #expect(FileDigest.sha256(fleet.sink.appending(other.path)) == other.sha256)
        }

        /// The bytes of the bodies that nginx has sent in these requests.
        private static func bytes(_ requests: some Sequence<NginxServer.Request>) -> Int64 {
            requests.reduce(0) { $0 + $1.bodyBytesSent }
        }

        @Test func secondGroupIsGivenTheFileOfTheFirst() async throws {
            try await Self.withNginx { nginx, file, _ in
                try await Fleet.run { fleet in
                    try await fleet.knowOrigins()
                    try await fleet.startWorker("one")
                    let first = try await Self.submit(fleet, "first", file)
                    try await fleet.waitForEnd(of: "first")
                    #expect(Self.bytes(nginx.requests) == Self.size)
                    let count = nginx.requests.count
                    let second = try await Self.submit(fleet, "second", file)
                    let group = try await fleet.waitForEnd(of: "second")
                    #expect(nginx.requests.dropFirst(count).map(\.status) == [304])
                    #expect(group.bytes.done == Self.size && group.bytes.total == Self.size)
                    let task = try await fleet.client().task(second.path, of: "second")
                    #expect(task.reusedFrom == first.path && task.bytes.done == Self.size && task.etag != nil)
                    try await Self.check(fleet, second, beside: first)
                    // The first group's file goes, the second group's stays.
                    _ = try await fleet.muster(["remove", "first", "--files", "delete"])
                    try await eventually("the end of the first file") {
                        !FileManager.default.fileExists(atPath: fleet.sink.appending(first.path).string)
                    }
                    try #expect(FileDigest.sha256(fleet.sink.appending(second.path)) == file.sha256)
                    // The second group's file is there for a third group.
                    let third = try await Self.submit(fleet, "third", file)
                    try await fleet.waitForEnd(of: "third")
                    #expect(nginx.requests.dropFirst(count).map(\.status) == [304, 304])
                    try await Self.check(fleet, third, beside: second)
                }
            }
        }

        @Test func groupsThatWantItAtTheSameTimeFetchItOnce() async throws {
            try await Self.withNginx(limitRate: 16 << 20) { nginx, file, _ in
                try await Fleet.run(coordinators: 2) { fleet in
                    try await fleet.knowOrigins()
                    // Both groups exist before a worker can fetch, and there is room for all chunks of both.
                    let first = try await Self.submit(fleet, "first", file)
                    let second = try await Self.submit(fleet, "second", file)
                    for name in ["one", "two"] { try await fleet.startWorker(name, slots: 8) }
                    try await fleet.waitForEnd(of: "first")
                    try await fleet.waitForEnd(of: "second")
                    #expect(Self.bytes(nginx.requests) == Self.size)
                    #expect(nginx.requests.count { $0.status == 304 } == 1)
                    let reused = try await [
                        fleet.client().task(first.path, of: "first").reusedFrom,
                        fleet.client().task(second.path, of: "second").reusedFrom,
                    ]
                    #expect(reused == [nil, first.path] || reused == [second.path, nil])
                    try await Self.check(fleet, second, beside: first)
                    try await Self.check(fleet, first, beside: second)
                }
            }
        }

        @Test func withReuseSwitchedOffEverythingIsFetched() async throws {
            try await Self.withNginx { nginx, file, _ in
                try await Fleet.run { fleet in
                    try await fleet.knowOrigins()
                    try await fleet.startWorker("one")
                    let first = try await Self.submit(fleet, "first", file)
                    try await fleet.waitForEnd(of: "first")
                    let second = try await Self.submit(fleet, "second", file, reuse: false)
                    try await fleet.waitForEnd(of: "second")
                    #expect(Self.bytes(nginx.requests) == 2 * Self.size)
                    #expect(nginx.requests.allSatisfy { $0.status != 304 })
                    #expect(try await fleet.client().group("second").policy?.reuse == false)
                    try await Self.check(fleet, second, beside: first)
                }
            }
        }

        @Test func changedFileIsFetchedAgain() async throws {
            try await Self.withNginx { nginx, file, path in
                try await Fleet.run { fleet in
                    try await fleet.knowOrigins()
                    try await fleet.startWorker("one")
                    let first = try await Self.submit(fleet, "first", file)
                    try await fleet.waitForEnd(of: "first")
                    let content = ScriptedOrigin.Content.seeded(seed: 42, size: Self.size)
                    try Data(content.allBytes).write(to: URL(filePath: path.string), options: .atomic)
                    var second = try await Self.submit(fleet, "second", file)
                    second = WantedFile(path: second.path, url: second.url, sha256: content.sha256())
                    try await fleet.waitForEnd(of: "second")
                    #expect(Self.bytes(nginx.requests) == 2 * Self.size)
                    try await Self.check(fleet, second, beside: first)
                }
            }
        }
    }
}
