import FoundationEssentials
import MusterAPI
import MusterCore
import MusterTestSupport
import SystemPackage
import Testing

extension EndToEnd {
    /// Every row of the range contract, over every transport that has it, through coordinator, worker and files.
    @Suite struct Rows {
        static let all = Row.first + Row.second + Row.third

        @Test func everyRowIsThere() {
            // Row 37 (ftp, sftp) is played by real servers, row 39 (addresses) by a fleet that guards them.
            #expect(Set(Self.all.map(\.number)).union([37, 39]) == Set(1...39))
        }

        @Test(arguments: ScriptedOrigin.Transport.allCases, [Row.Acquaintance.known, .unknown])
        func eachRowGetsItsRightAnswer(
            over transport: ScriptedOrigin.Transport, of acquaintance: Row.Acquaintance
        ) async throws {
            let rows = Self.all.filter {
                $0.transports.contains(transport) && [acquaintance, .any].contains($0.acquaintance)
            }
            let options = ["--retry-base", "20ms", "--retry-maximum", "200ms"]
            try await Fleet.run(options: options) { fleet in
                if acquaintance == .known { try await fleet.knowOrigins() }
                for name in ["a", "b"] { try await fleet.startWorker(name, slots: 48) }
                var plays: [(name: String, row: Row, play: Row.Play)] = []
                for (index, row) in rows.enumerated() {
                    let stage = try await Self.stage(row, transport)
                    var play = try await row.play(stage)
                    let name = "row-\(row.number)-\(index)"
                    if play.task.path == nil { play.task.path = name }
                    play.task.key = name
                    plays.append((name, row, play))
                    _ = try await fleet.client().createGroup(
                        GroupRequest(
                            name: name, sealed: true, tasks: [play.task], fetch: play.fetch, policy: play.policy,
                            resolver: play.resolver))
                }
                for (name, row, play) in plays {
                    try await fleet.waitForEnd(of: name, limit: .seconds(90))
                    try await Self.judge(name, row, play, fleet)
                    // The further checks of a row assume that it is fetched in chunks.
                    guard acquaintance == .known || row.acquaintance == .unknown else { continue }
                    try await play.check(fleet.client().task(name, of: name), play.origin.requests)
                }
            }
        }

        /// An origin for one row: what the fleet learns of it from one row must not affect the others.
        private static func stage(_ row: Row, _ transport: ScriptedOrigin.Transport) async throws -> Row.Stage {
            let origin = try await ScriptedOrigin.start(transport: transport)
            return Row.Stage(origin: origin, base: options(for: origin))
        }

        /// The options that a transport needs. Time limits are long, since a busy machine is late; only a play with a silent origin has short ones.
        static func options(for origin: ScriptedOrigin) -> FetchOptions {
            var options = FetchOptions()
            options.caFile = origin.caFile?.string
            switch origin.transport {
            case .plain, .tls: break
            case .h2: options.httpVersion = .http2
            case .h2c: options.httpVersion = .priorKnowledge
            }
            options.connectTimeoutSeconds = 60
            options.firstByteTimeoutSeconds = 60
            options.lowSpeedBytesPerSecond = 1_024
            options.lowSpeedSeconds = 60
            return options
        }

        private static func judge(_ name: String, _ row: Row, _ play: Row.Play, _ fleet: Fleet) async throws {
            let label = "row \(row.number), \(row.title) (\(name))"
            let task = try await fleet.client().task(name, of: name)
            let seen = play.origin.requests.map {
                "\($0.method) \($0.range ?? "-") -> \($0.status) \($0.bodyBytesSent)"
            }
            switch play.expected {
            case .bytes(let right):
                guard task.state == .succeeded else {
                    Issue.record("\(label): \(task.failure.map { "\($0)" } ?? "\(task.state)"); \(seen)")
                    return
                }
                let found = try FileDigest.sha256(fleet.sink.appending(task.path))
                #expect(right.contains(found), "\(label): wrong bytes; \(seen)")
            case .failure(let kinds):
                let kind = task.failure?.kind
                #expect(task.state == .failed && kind.map(kinds.contains) == true, "\(label): \(task); \(seen)")
                let isThere = FileManager.default.fileExists(atPath: fleet.sink.appending(task.path).string)
                #expect(!isThere, "\(label): there is a file")
            }
        }
    }
}
