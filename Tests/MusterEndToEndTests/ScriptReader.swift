import FoundationEssentials
import MusterAPI
import MusterTestSupport
import SystemPackage
import Testing

/// A named reader of the log in a process of its own, a script with curl: it writes down the positions of a page of events, then
/// acknowledges them. It may be killed at any moment.
struct ScriptReader: Sendable {
    /// The coordinator that it asks.
    let url: String
    /// The file that it writes the positions to, a line each, over all of its runs.
    let file: FilePath
    /// How many events it takes at once.
    let pageSize: Int

    /// Starts the reader and kills it (SIGKILL) after a random number of pages, again and again until it has dealt with the position that
    /// `end` names once it is known. Returns the number of runs.
    func live(
        until end: Observed<Int64?>, pages: ClosedRange<Int>, using random: inout SeededGenerator
    ) async throws -> Int {
        var lives = 0
        while end.value == nil || positions.last != end.value {
            lives += 1
            let script = try await TestProcess.start(
                "/usr/bin/env", arguments: ["bash", "-c", Self.script, "consumer", url, file.string, "\(pageSize)"])
            let more = Int.random(in: pages, using: &random)
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask {
                    try await script.waitForOutput(limit: .seconds(600)) { $0.split(separator: "\n").count >= more }
                }
                group.addTask {
                    let last = try await end.wait(for: "the end of the log", limit: .seconds(600)) { $0 != nil } ?? 0
                    try await eventually("position \(last)", limit: .seconds(600)) { positions.last == last }
                }
                try await group.next()
                group.cancelAll()
            }
            try await script.killTree()
        }
        return lives
    }

    /// The positions that it has dealt with, in its order.
    var positions: [Int64] {
        let text = FileManager.default.contents(atPath: file.string).map { String(decoding: $0, as: UTF8.self) }
        return text?.split(separator: "\n").compactMap { Int64($0) } ?? []
    }

    /// Checks that it has dealt with every position up to the last one, in order: positions that weren't acknowledged before a kill come
    /// again, and none is passed over (I9).
    func check(last: Int64) {
        var reached: Int64 = 0
        for position in positions {
            #expect(position <= reached + 1, "\(reached + 1) was passed over")
            reached = max(reached, position)
        }
        #expect(reached == last)
    }

    private static let script = """
        while :; do
            page=$(curl --silent --fail "$1/v1/consumers/script/events?limit=$3&wait=5s") || { sleep 0.1; continue; }
            last=
            for position in $(grep -o '"sequence":"[0-9]*"' <<<"$page" | grep -o '[0-9]*'); do
                last=$((10#$position))
                echo "$last" >>"$2"
            done
            [ -n "$last" ] || continue
            curl --silent --fail --output /dev/null --header "Content-Type: application/json" \\
                --data "{\\"position\\": $last}" "$1/v1/consumers/script/ack" &&
                echo "acknowledged $last"
        done
        """
}
