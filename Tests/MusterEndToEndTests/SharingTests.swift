import FoundationEssentials
import MusterAPI
import MusterCore
import MusterTestSupport
import SystemPackage
import Testing

extension EndToEnd {
    /// Groups that compete for one origin share it by bytes, as their weights say, whatever the size of their files.
    @Suite struct Sharing {
        /// Weights of a group of small files and a group of large ones.
        struct Weights: Sendable, CustomTestStringConvertible {
            let small: Int32
            let large: Int32
            /// The bytes of all small files together; the large files last longer.
            let bytes: Int64

            var testDescription: String { "\(small):\(large)" }
            /// The small files' share of all bytes.
            var share: Double { Double(small) / Double(small + large) }
        }

        private static let smallSize = Int64.kibibytes(64)
        private static let largeSize = Int64.mebibytes(4)

        /// Measured by nginx's log, which has the responses in the order in which they ended: the bytes that had come of the large files
        /// when nine tenths of the small ones had come. Until then both groups have something to lease all the time.
        @Test(arguments: [
            Weights(small: 1, large: 1, bytes: .mebibytes(120)), Weights(small: 3, large: 1, bytes: .mebibytes(180)),
            Weights(small: 1, large: 3, bytes: .mebibytes(90)),
        ])
        func twoGroupsShareAnOriginByBytes(weights: Weights) async throws {
            let root = try TemporaryDirectory()
            for (name, size) in [("small", Self.smallSize), ("large", Self.largeSize)] {
                let bytes = ScriptedOrigin.Content.seeded(seed: UInt64(size), size: size).allBytes
                try Data(bytes).write(to: URL(filePath: root.path.appending(name).string))
            }
            let nginx = try await NginxServer.start(documentRoot: root.path)
            try await Fleet.run { fleet in
                let client = await fleet.client()
                // What there is to share: far fewer connections than the workers have slots.
                _ = try await client.setOrigin(nginx.url, OriginPatch(maxConnections: .set(4)))
                try await fill("small", weights.small, Int(weights.bytes / Self.smallSize), nginx, client)
                try await fill("large", weights.large, Int(4 * weights.bytes / Self.largeSize), nginx, client)
                for name in ["a", "b"] { try await fleet.startWorker(name, slots: 8) }
                try await fleet.waitForEnd(of: "small", limit: .seconds(240))
                _ = try await client.apply(.cancel, to: "large")
                let log = nginx.requests
                let small = log.indices.filter { log[$0].uri.hasPrefix("/small?") }
                let count = small.count * 9 / 10
                let large = log[..<small[count]].reduce(0) { $0 + ($1.uri.hasPrefix("/large?") ? $1.bodyBytesSent : 0) }
                let bytes = Int64(count) * Self.smallSize
                let share = Double(bytes) / Double(bytes + large)
                print(
                    "sharing: weights \(weights.testDescription), the small files got \(share) of \(bytes + large) bytes"
                )
                #expect(abs(share - weights.share) <= 0.05 * weights.share)
            }
            try await nginx.stop()
        }

        /// Makes a sealed group of so many files.
        private func fill(
            _ name: String, _ weight: Int32, _ count: Int, _ nginx: NginxServer, _ client: MusterClient
        ) async throws {
            let tasks = (0..<count).map { TaskRequest(urls: ["\(nginx.url)/\(name)?n=\($0)"], path: "\(name)/\($0)") }
            _ = try await client.createGroup(GroupRequest(name: name, sealed: true, weight: weight, tasks: tasks))
        }
    }
}
