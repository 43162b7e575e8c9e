import MusterAPI
import MusterCore
import MusterTestSupport
import Testing

extension EndToEnd {
    /// More urgent tasks get connections from running ones (I15, adr/0024).
    @Suite struct Priorities {
        /// Every connection that the origin may have carries a transfer that never comes to its end by itself.
        @Test func anUrgentFileDoesNotWaitForSlowOnesToEndAndNothingIsFetchedTwice() async throws {
            let origin = try await ScriptedOrigin.start()
            let slow = origin.serveFiles("slow", sizes: Array(repeating: .mebibytes(20), count: 4), seed: 3)
            for file in slow { origin.hold("/\(file.path)", afterBytes: .kibibytes(256)) }
            let urgent = origin.serveFile("urgent", size: 6)
            try await Fleet.run { fleet in
                try await fleet.startWorker("a", slots: 16)
                try await fleet.submit("slow", slow)
                // The cap of an origin is eight connections.
                try await eventually("eight transfers") {
                    slow.reduce(0) { $0 + origin.bytesSent("/\($1.path)") } >= 8 * .kibibytes(256)
                }
                _ = try await fleet.muster(["add", "urgent", "--priority", "1000", urgent.url])
                try await fleet.waitForEnd(of: "urgent", limit: .seconds(60))
                #expect(try await fleet.client().group("slow").tasks.succeeded == 0)
                for file in slow { origin.release("/\(file.path)") }
                try await fleet.waitForEnd(of: "slow")
                try await fleet.check("slow", slow)
                try await fleet.check("urgent", [urgent])
                let metrics = try await fleet.metrics()
                print("preempted: \(metrics["muster_leases_preempted_total", default: 0])")
                #expect(metrics["muster_leases_preempted_total", default: 0] > 0)
                // Nothing is fetched twice, besides what was on its way in the buffers of a transfer that ended early.
                #expect(metrics["muster_bytes_received_total", default: 0] <= 4 * (20 << 20) + 6 + 8 * (512 << 10))
            }
        }

        @Test func aSmallerCapActsOnWhatRuns() async throws {
            let origin = try await ScriptedOrigin.start()
            let file = origin.serveFile("big", size: .mebibytes(40))
            origin.hold("/big", afterBytes: .kibibytes(256))
            try await Fleet.run(options: ["--minimum-chunk", "1MiB"]) { fleet in
                try await fleet.startWorker("a", slots: 8)
                try await fleet.submit("g", [file])
                try await origin.waitUntil("/big", bytesSent: 4 * .kibibytes(256))
                _ = try await fleet.muster(["origins", "set", origin.url, "--max-connections", "1"])
                try await eventually("one connection") {
                    try await fleet.client().origins().items.first { $0.key == origin.url }?.connections == 1
                }
                origin.release("/big")
                try await fleet.waitForEnd(of: "g")
                try await fleet.check("g", [file])
            }
        }
    }
}
