import FoundationEssentials
import MusterAPI
import MusterCore
import MusterTestSupport
import SystemPackage
import Testing

extension EndToEnd {
    /// Readers of the log in processes of their own.
    @Suite struct Consumers {
        /// A script with curl, killed (SIGKILL) at random moments and started again, deals with every position in order, while
        /// one of two coordinators is killed as well.
        @Test func scriptThatIsKilledAtRandomDealsWithEverythingInOrder() async throws {
            var generator = SeededGenerator.forTest()
            try await Fleet.run(coordinators: 2) { fleet in
                let coordinators = await fleet.coordinators
                let client = await fleet.client()
                let count: Int64 = 80
                let seen = fleet.scratch.appending("seen")
                var lives = 0
                try await withThrowingTaskGroup(of: Void.self) { group in
                    group.addTask {
                        for number in 0..<count {
                            if number == count / 2 { try await fleet.kill(coordinators[0].process) }
                            _ = try await client.createGroup(
                                GroupRequest(name: "g\(number)", sealed: true), idempotencyKey: "g\(number)")
                        }
                    }
                    while Self.positions(seen).last != count {
                        lives += 1
                        let script = try await TestProcess.start(
                            "/usr/bin/env",
                            arguments: ["bash", "-c", Self.script, "consumer", coordinators[1].url, seen.string])
                        let more = Int.random(in: 1...12, using: &generator)
                        try await script.waitForOutput { text in
                            text.split(separator: "\n").count >= more || text.contains("acknowledged \(count)\n")
                        }
                        try await script.killTree()
                    }
                    try await group.waitForAll()
                }
                var last: Int64 = 0
                for position in Self.positions(seen) {
                    #expect(position <= last + 1, "\(last + 1) was passed over")
                    last = max(last, position)
                }
                #expect(last == count && lives > 3)
            }
        }

        /// Writes down each event, then acknowledges it.
        private static let script = """
            while :; do
                page=$(curl --silent --fail "$1/v1/consumers/script/events?limit=3&wait=5s") || { sleep 0.1; continue; }
                for position in $(grep -o '"sequence":"[0-9]*"' <<<"$page" | grep -o '[0-9]*'); do
                    echo $((10#$position)) >>"$2"
                    curl --silent --fail --output /dev/null --data "{\\"position\\": $((10#$position))}" \\
                        "$1/v1/consumers/script/ack" && echo "acknowledged $((10#$position))"
                done
            done
            """

        private static func positions(_ file: FilePath) -> [Int64] {
            let text = FileManager.default.contents(atPath: file.string).map { String(decoding: $0, as: UTF8.self) }
            return text?.split(separator: "\n").compactMap { Int64($0) } ?? []
        }
    }
}
