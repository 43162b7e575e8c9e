import Glibc
import MusterAPI
import MusterCore
import MusterTestSupport
import SystemPackage
import Testing

extension EndToEnd {
    /// Workers that would hold up the end of a group while others have nothing to do.
    @Suite struct Stragglers {
        @Test func aSlowWorkerThatIsStoppedHalfOfTheTimeGivesItsTailsAway() async throws {
            let origin = try await ScriptedOrigin.start()
            // A chunk takes other workers 4 s; two chunks take the slow worker more than a minute.
            origin.limitRate(bytesPerSecond: 2 << 20)
            let file = origin.serveFile("big.bin", size: .mebibytes(64))
            try await Fleet.run(timeToLive: "20s", options: ["--minimum-chunk", "8MiB"]) { fleet in
                try await fleet.knowOrigins()
                let slow = try await fleet.startWorker("slow", slots: 2, options: ["--rate", "256KiB/s"])
                let start = ContinuousClock.now
                try await fleet.submit("g", [file])
                try await origin.waitForRequests("/big.bin", count: 2)
                for name in ["a", "b"] { try await fleet.startWorker(name, slots: 2) }
                try await withThrowingTaskGroup(of: Void.self) { group in
                    group.addTask {
                        // The fault itself: stopped for one second of every two.
                        while !Task.isCancelled {
                            try slow.signal(SIGSTOP)
                            try? await Task.sleep(for: .seconds(1))
                            try slow.signal(SIGCONT)
                            try? await Task.sleep(for: .seconds(1))
                        }
                    }
                    try await fleet.waitForEnd(of: "g")
                    group.cancelAll()
                }
                let elapsed = ContinuousClock.now - start
                try await fleet.check("g", [file])
                let metrics = try await fleet.metrics()
                #expect(metrics["muster_shrinks_agreed_total", default: 0] > 0)
                // Two in a hundred may be fetched twice, besides what was on its way in the buffers of a transfer that ended early.
                let received = metrics["muster_bytes_received_total", default: 0]
                #expect(received <= (64 << 20) * 102 / 100 + 8 * (512 << 10))
                let sent = origin.bytesSent("/big.bin")
                print("the group took \(elapsed), \(sent) bytes were sent, \(received) received, \(metrics)")
            }
        }

        /// Parts whose requests are refused are given back to the running request (adr/0037). The first request, the trial of a byte, and
        /// the request for one part are served.
        @Test(arguments: [
            ScriptedOrigin.Misbehaviour.status(403, retryAfter: nil), .status(503, retryAfter: nil),
            .hang(afterBytes: 64 << 10),
        ])
        func slowFileWhoseURLWorksAFewTimesComesByTheRequestsThatAreServed(
            habit: ScriptedOrigin.Misbehaviour
        ) async throws {
            let origin = try await ScriptedOrigin.start()
            origin.limitRate(bytesPerSecond: 256 << 10)
            // The holder keeps what it fetches in ten seconds: at least three parts of a mebibyte are left.
            let file = origin.serveFile("slow.bin", size: .mebibytes(6))
            origin.misbehave("/slow.bin", habit, when: .after(3))
            try await Fleet.run { fleet in
                try await fleet.startWorker("w", slots: 8)
                try await fleet.submit("g", [file])
                try await fleet.waitForEnd(of: "g")
                try await fleet.check("g", [file])
                #expect(origin.requests(for: "/slow.bin").count > 3, "all that was asked for was served")
            }
        }

        @Test func chunkThatAStoppedWorkerNearlyHasIsTakenOverAndItsWritesChangeNothing() async throws {
            let origin = try await ScriptedOrigin.start()
            let last = origin.serveFile("last.bin", size: .mebibytes(16))
            let others = origin.serveFiles("f", sizes: Array(repeating: .mebibytes(16), count: 6), seed: 7)
            let held = Int64.kibibytes(7_680)
            origin.hold("/last.bin", afterBytes: held)
            try await Fleet.run(timeToLive: "120s", options: ["--minimum-chunk", "8MiB"]) { fleet in
                try await fleet.knowOrigins()
                let sleeper = try await fleet.startWorker("sleeper", slots: 2)
                _ = try await fleet.muster(["add", "g", "--open", last.url])
                try await origin.waitForRequests("/last.bin", count: 2)
                try await fleet.waitUntilDurable(2 * held, of: "last.bin", in: "g")
                try sleeper.signal(SIGSTOP)
                // The rest arrives in the sleeper's sockets.
                origin.release("/last.bin")
                try await fleet.startWorker("awake", slots: 2)
                let start = ContinuousClock.now
                _ = try await fleet.muster(["add", "g"] + others.map(\.url))
                try await fleet.waitForEnd(of: "g", limit: .seconds(90))
                let elapsed = ContinuousClock.now - start
                let metrics = try await fleet.metrics()
                print("the group ended after \(elapsed), \(metrics)")
                #expect(metrics["muster_leases_silent_total"] == 2)
                // Only the rests of both chunks came twice: one mebibyte of 112.
                let sent = ([last] + others).reduce(0) { $0 + origin.bytesSent("/\($1.path)") }
                #expect(sent <= .mebibytes(112 + 1))

                let path = fleet.sink.appending("last.bin")
                let before = try FileIdentity(path)
                try sleeper.signal(SIGCONT)
                try await fleet.check("g", [last] + others)
                // The sleeper has dropped what it lost when it works again.
                let next = origin.serveFile("next.bin", size: .kibibytes(64), seed: 9)
                try await fleet.submit("h", [next])
                try await fleet.waitForEnd(of: "h")
                #expect(try FileIdentity(path) == before)
            }
        }
    }
}

extension Fleet {
    /// The counters of stragglers, of preemption and of bytes of the first coordinator.
    func metrics() throws -> [String: Int] {
        guard let port = coordinators.first?.port else { throw Unexpected("no coordinator") }
        let lines = try PlainHTTP.get(port: port, path: "/metrics").body.split(separator: "\n")
        return Dictionary(
            lines.compactMap { line in
                let words = line.split(separator: " ")
                guard words.count == 2, let value = Int(words[1]) else { return nil }
                return ["shrinks", "silent", "preempted", "bytes"].contains(where: words[0].contains)
                    ? (String(words[0]), value) : nil
            }, uniquingKeysWith: { first, _ in first })
    }
}
