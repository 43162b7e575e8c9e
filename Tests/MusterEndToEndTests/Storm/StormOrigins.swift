import FoundationEssentials
import MusterAPI
import MusterCore
import MusterTestSupport
import SystemPackage

/// A file of the storm: what its bytes must be, whatever happens to its task.
struct StormFile: Sendable {
    /// Its key and its path in the sink; no two files have the same.
    let path: String
    /// The task that fetches it.
    let task: TaskRequest
    /// How many bytes it has.
    let size: Int64
    /// The SHA-256 of its bytes.
    let sha256: String
    /// Whether nginx alone serves it, whose log tells what was sent of it.
    let isServedByNginxAlone: Bool
}

/// Where the files of the storm come from: nginx, and origins that misbehave in ways that a task may survive.
struct StormOrigins: Sendable {
    /// nginx's rate for each connection, in bytes per second.
    static let rate = 256 << 10
    private static let kinds = 24
    private let root: TemporaryDirectory
    private let nginx: NginxServer
    /// The origins that misbehave.
    let hostile: [ScriptedOrigin]
    /// An origin that does not, at no path of the storm: for files whose fetching shows whether the installation works.
    let steady: ScriptedOrigin
    /// The paths on which workers reach nginx and the hostile origins, in this order.
    let paths: [DistantPath]
    private let contents: [ScriptedOrigin.Content]
    private let digests: [String]

    /// Starts them.
    static func start(using random: inout SeededGenerator) async throws -> StormOrigins {
        let root = try TemporaryDirectory()
        var contents: [ScriptedOrigin.Content] = []
        for index in 0..<kinds {
            let size: Int64 =
                switch index % 6 {
                case 0: .random(in: 1_100_000...3_500_000, using: &random)
                case 1: .random(in: 200_000...900_000, using: &random)
                case 2, 3, 4, 5: .random(in: 0...60_000, using: &random)
                case let other: Int64(other)
                }
            let content = ScriptedOrigin.Content.seeded(seed: random.next(), size: size)
            contents.append(content)
            try Data(content.allBytes).write(to: URL(filePath: root.path.appending("\(index)").string))
        }
        var hostile: [ScriptedOrigin] = []
        for _ in 0..<4 {
            let origin = try await ScriptedOrigin.start()
            origin.limitRate(bytesPerSecond: rate)
            for (index, content) in contents.enumerated() {
                origin.serve("/\(index)", .init(content))
                origin.misbehaveAtRandom("/\(index)", seed: random.next(), rate: 0.3, from: misbehaviours(content))
            }
            hostile.append(origin)
        }
        let nginx = try await NginxServer.start(documentRoot: root.path, limitRate: rate)
        var paths: [DistantPath] = []
        for port in [nginx.port] + hostile.map(\.port) { paths.append(try await DistantPath.open(to: .port(port))) }
        let steady = try await ScriptedOrigin.start()
        steady.limitRate(bytesPerSecond: 2 << 20)
        return StormOrigins(
            root: root, nginx: nginx, hostile: hostile, steady: steady, paths: paths, contents: contents,
            digests: contents.map { $0.sha256() })
    }

    /// Misbehaviours that a task gets over sooner or later, or fails of; the bytes of its file are right in any case.
    private static func misbehaviours(_ content: ScriptedOrigin.Content) -> [ScriptedOrigin.Misbehaviour] {
        [
            .ignoreRange, .noContentRange, .shortRange(bytes: 1 + content.size / 2), .mistrustIfRange, .weakETag,
            .chunked,
            .truncated(afterBytes: content.size / 2), .reset(afterBytes: content.size / 3), .closeBeforeHeaders,
            .status(500, retryAfter: nil), .status(503, retryAfter: "0"), .status(404, retryAfter: nil),
            .hang(afterBytes: content.size / 2), .redirectChain(hops: 2, status: 302), .etag("\"another\""),
        ]
    }

    /// Makes the file with this number, which no other file has.
    func file(_ number: Int, of group: String, using random: inout SeededGenerator) -> StormFile {
        let kind = Int.random(in: 0..<contents.count, using: &random)
        // The number makes the request lines of different tasks differ.
        let good = "\(paths[0].url)/\(kind)?n=\(number)"
        let bad = "\(paths[1 + Int.random(in: 0..<hostile.count, using: &random)].url)/\(kind)?n=\(number)"
        let urls =
            switch Int.random(in: 0..<10, using: &random) {
            case 0..<5: [good]
            case 5..<8: [bad]
            case 8: [good, bad]
            case _: [bad, good]
            }
        let path = "\(group)/\(number).bin"
        let isDigestKnown = Int.random(in: 0..<3, using: &random) == 0
        let task = TaskRequest(
            urls: urls, path: path, digests: isDigestKnown ? ["sha256": digests[kind]] : nil,
            priority: .random(in: 0...3, using: &random))
        return StormFile(
            path: path, task: task, size: contents[kind].size, sha256: digests[kind],
            isServedByNginxAlone: urls == [good])
    }

    /// Muster's keys of these origins.
    var keys: [String] { paths.map(\.url) }

    /// Ends all misbehaviours.
    func calm() {
        for origin in hostile {
            origin.acceptConnections()
            for index in contents.indices { origin.behave("/\(index)") }
        }
    }

    /// The requests that nginx has had so far, by the number of the file.
    var served: [Int: [NginxServer.Request]] {
        Dictionary(grouping: nginx.requests) { $0.uri.split(separator: "=").last.flatMap { Int($0) } ?? -1 }
    }

    /// How many requests the hostile origins have had.
    var hostileRequests: Int { hostile.reduce(0) { $0 + $1.requests.count } }

    /// Stops them.
    func stop() async throws {
        try await nginx.stop()
        for origin in hostile + [steady] { await origin.stop() }
    }
}
