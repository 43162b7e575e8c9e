import FoundationEssentials
import MusterAPI
import MusterCore
import MusterTestSupport
import SystemPackage
import Testing

extension EndToEnd {
    /// Muster and other programs against the same hostile origins. Run by hand: `MUSTER_COMPARISON=FILE` names the file for the table.
    @Suite struct Comparison {
        /// How a program ended.
        private struct Result {
            let outcome: HostileGallery.Outcome
            let seconds: Double
        }

        /// Results by the name of the exhibit.
        private typealias Results = [String: Result]

        /// The file for the table.
        private static var tableFile: String? { ProcessInfo.processInfo.environment["MUSTER_COMPARISON"] }

        /// The command line of each of the other programs, with its own options to split a file and to try again.
        private static let peers: [(name: String, arguments: @Sendable (_ url: String, _ file: String) -> [String])] = [
            ("curl", { ["-sSfL", "--retry", "2", "--retry-delay", "0", "--max-time", "20", "-o", $1, $0] }),
            (
                "aria2c",
                { url, file in
                    let path = FilePath(file)
                    return [
                        "-q", "-x4", "-s4", "-k1M", "--max-tries=3", "--retry-wait=0", "--timeout=5",
                        "--connect-timeout=5",
                        "-d", path.removingLastComponent().string, "-o", path.lastComponent?.string ?? "file", url,
                    ]
                }
            ),
            ("wget2", { ["-q", "--chunk-size=1M", "--max-threads=4", "--tries=3", "--timeout=5", "-O", $1, $0] }),
            ("rclone", { ["copyurl", "--retries", "3", "--timeout", "5s", "--contimeout", "5s", $0, $1] }),
        ]

        @Test(.enabled(if: tableFile != nil)) func musterNeverEndsWithWrongBytes() async throws {
            let real = try await RealGallery.start()
            var table: [(name: String, results: Results)] = []
            let exhibits = try await HostileGallery.start().exhibits + real.exhibits
            table.append(("muster", try await musterResults(real, withDigest: false)))
            table.append(("muster, told the digest", try await musterResults(real, withDigest: true)))
            for exhibit in exhibits {
                let plain = table[0].results[exhibit.name]?.outcome
                #expect(plain != .wrong || exhibit.needsDigest, "\(exhibit.name): wrong bytes")
                #expect(plain != .refused || exhibit.right != .bytes || exhibit.isSlow, "\(exhibit.name): gave up")
                #expect(
                    table[1].results[exhibit.name]?.outcome != .wrong,
                    "\(exhibit.name): wrong bytes in spite of the digest")
            }
            guard let file = Self.tableFile else { return }
            for (name, arguments) in Self.peers where InstalledProgram.find(name) != nil {
                table.append((name, try await results(of: name, real, arguments)))
            }
            try await real.stop()
            try Data(Self.render(exhibits.sorted { ($0.row, $0.name) < ($1.row, $1.name) }, table).utf8)
                .write(to: URL(filePath: file))
        }

        /// Runs one group for each exhibit, one after the other.
        private func musterResults(_ real: RealGallery, withDigest: Bool) async throws -> Results {
            let gallery = try await HostileGallery.start()
            var results: Results = [:]
            try await Fleet.run(options: ["--retry-base", "20ms", "--retry-maximum", "200ms"]) { fleet in
                var fetch = FetchOptions()
                fetch.connectTimeoutSeconds = 2
                fetch.firstByteTimeoutSeconds = 2
                fetch.lowSpeedSeconds = 2
                for name in ["a", "b"] { try await fleet.startWorker(name, slots: 64) }
                for exhibit in gallery.exhibits + real.exhibits {
                    let digests = withDigest ? exhibit.sha256.first.map { ["sha256": $0] } : nil
                    var fetch = fetch
                    let (url, credentials) = Self.split(exhibit.url)
                    fetch.credentials = credentials
                    let urls = [url] + (exhibit.mirror.map { [$0] } ?? [])
                    var task = TaskRequest(urls: urls, key: "file", path: exhibit.name, digests: digests)
                    // The other programs have a time limit of their own.
                    task.deadline = "30s"
                    let begin = ContinuousClock.now
                    _ = try await fleet.client().createGroup(
                        GroupRequest(name: exhibit.name, sealed: true, tasks: [task], fetch: fetch))
                    let group = try await fleet.waitForEnd(of: exhibit.name, limit: .seconds(60))
                    let time = ContinuousClock.now - begin
                    let file = fleet.sink.appending(exhibit.name)
                    let digest = group.state == .succeeded ? try FileDigest.sha256(file) : nil
                    results[exhibit.name] = Result(
                        outcome: exhibit.outcome(digest: digest), seconds: time / .seconds(1))
                }
            }
            await gallery.stop()
            return results
        }

        /// Splits the credentials off a URL: Muster takes them separately, since URLs are shown.
        private static func split(_ url: String) -> (url: String, credentials: FetchOptions.Credentials?) {
            guard let scheme = url.firstRange(of: "://"), let at = url.firstIndex(of: "@") else { return (url, nil) }
            let parts = url[scheme.upperBound..<at].split(separator: ":", maxSplits: 1).map { String($0) }
            guard parts.count == 2 else { return (url, nil) }
            let rest = url[at...].dropFirst()
            return (String(url[..<scheme.upperBound]) + String(rest), .init(user: parts[0], password: Secret(parts[1])))
        }

        private func results(
            of name: String, _ real: RealGallery, _ arguments: @Sendable (String, String) -> [String]
        ) async throws -> Results {
            guard let program = InstalledProgram.find(name) else { return [:] }
            let gallery = try await HostileGallery.start()
            var results: Results = [:]
            for exhibit in gallery.exhibits + real.exhibits {
                let place = try TemporaryDirectory()
                let file = place.path.appending("file")
                let begin = ContinuousClock.now
                let process = try await TestProcess.start(
                    "/usr/bin/timeout", arguments: ["30", program.string] + arguments(exhibit.url, file.string))
                let exit = try await process.waitForExit(limit: .seconds(60))
                let time = ContinuousClock.now - begin
                let digest = exit == .exited(0) ? try? FileDigest.sha256(file) : nil
                results[exhibit.name] = Result(outcome: exhibit.outcome(digest: digest), seconds: time / .seconds(1))
            }
            await gallery.stop()
            return results
        }

        private static func render(
            _ exhibits: [HostileGallery.Exhibit], _ table: [(name: String, results: Results)]
        ) -> String {
            var lines = [
                "| row | the origin… | \(table.map(\.name).joined(separator: " | ")) |",
                "| --- | --- |\(table.map { _ in " --- |" }.joined())",
            ]
            for exhibit in exhibits {
                let cells = table.map { column in
                    guard let result = column.results[exhibit.name] else { return "–" }
                    let word =
                        switch result.outcome {
                        case .right: "right"
                        case .refused: "refused"
                        case .wrong: "**wrong bytes**"
                        }
                    return "\(word) \(seconds(result.seconds))"
                }
                lines.append("| \(exhibit.row) | \(exhibit.title) | \(cells.joined(separator: " | ")) |")
            }
            let wrong = table.map { "\($0.results.values.count { $0.outcome == .wrong })" }
            lines.append("| | files with wrong bytes | \(wrong.joined(separator: " | ")) |")
            let refused = table.map { "\($0.results.values.count { $0.outcome == .refused })" }
            lines.append("| | files refused | \(refused.joined(separator: " | ")) |")
            for (name, outcome) in [("right", HostileGallery.Outcome.right), ("refused", .refused)] {
                let medians = table.map { column in
                    let times = column.results.values.filter { $0.outcome == outcome }.map(\.seconds).sorted()
                    return times.isEmpty ? "–" : seconds(times[times.count / 2])
                }
                lines.append("| | median of what was \(name) | \(medians.joined(separator: " | ")) |")
            }
            return lines.joined(separator: "\n") + "\n"
        }

        private static func seconds(_ seconds: Double) -> String {
            let hundredths = Int((seconds * 100).rounded())
            let fraction = String(hundredths % 100)
            return "\(hundredths / 100).\(fraction.count < 2 ? "0" : "")\(fraction) s"
        }
    }
}
