import FoundationEssentials
import Glibc
import MusterAPI
import MusterCore
import MusterTestSupport
import SystemPackage
import Testing

extension EndToEnd {
    /// `muster on`: a command per event, at least once and in order.
    @Suite struct On {
        /// Starts a consumer of all groups whose command is a shell script in the fleet's scratch directory.
        private func start(_ fleet: Fleet, _ script: String, options: [String] = []) async throws -> TestProcess {
            try await TestProcess.muster(
                ["on", "*", "--consumer", "c"] + options
                    + ["--", "sh", "-c", "cd '\(fleet.scratch)' && \(script)"],
                environment: ["MUSTER_SERVER": .some(await fleet.servers)]
            )
        }

        /// The lines that the commands have written.
        private func lines(_ fleet: Fleet, _ name: String = "seen") -> [String] {
            let data = try? Data(contentsOf: URL(filePath: fleet.scratch.appending(name).string))
            return data.map { String(decoding: $0, as: UTF8.self).split(separator: "\n").map(String.init) } ?? []
        }

        /// Waits until the consumer has acknowledged everything that there is.
        private func waitUntilCaughtUp(_ fleet: Fleet) async throws {
            try await eventually("the consumer's place at the end of the log") {
                let consumer = try await fleet.client().consumers().items.first { $0.name == "c" }
                return consumer?.behind == 0
            }
        }

        @Test func everyEventOfAGroupRunsTheCommandInOrder() async throws {
            let origin = try await ScriptedOrigin.start()
            try await Fleet.run { fleet in
                try await fleet.startWorker("a")
                let script =
                    #"sed 's/.*"sequence":"0*//; s/".*//' >> seen; echo "$MUSTER_EVENT_ID $MUSTER_GROUP" >> ids"#
                let consumer = try await start(fleet, script)
                try await fleet.submit("g", origin.serveFiles("f", sizes: [10, 20, 30]))
                try await fleet.waitForEnd(of: "g")
                try await waitUntilCaughtUp(fleet)
                let log = try await fleet.log()
                #expect(lines(fleet) == log.map { "\($0.position)" })
                #expect(lines(fleet, "ids") == log.map { "\($0.id) g" })
                try consumer.signal(SIGTERM)
                #expect(try await consumer.waitForExit() == .exited(0), "\(consumer.standardError)")
            }
        }

        @Test func aKilledConsumerRunsTheUnacknowledgedEventAgain() async throws {
            let origin = try await ScriptedOrigin.start()
            try await Fleet.run { fleet in
                try await fleet.startWorker("a")
                try await fleet.submit("g", origin.serveFiles("f", sizes: [10]))
                try await fleet.waitForEnd(of: "g")
                // The first command never ends by itself.
                let held = try await start(fleet, #"echo "$MUSTER_EVENT_ID" >> seen; exec sleep 600"#)
                try await eventually("the first command") { lines(fleet).count == 1 }
                try await held.killTree()
                #expect(lines(fleet).count == 1)

                let next = try await start(fleet, #"echo "$MUSTER_EVENT_ID" >> seen"#)
                try await waitUntilCaughtUp(fleet)
                let ids = try await fleet.log().map(\.id)
                #expect(lines(fleet) == [ids[0]] + ids)
                try next.signal(SIGINT)
                #expect(try await next.waitForExit() == .exited(0))
            }
        }

        /// The command and what it started end with a killed consumer: otherwise the consumer's successor would run the command a second
        /// time beside it.
        @Test func aKilledConsumerTakesItsCommandWithIt() async throws {
            let origin = try await ScriptedOrigin.start()
            try await Fleet.run { fleet in
                try await fleet.startWorker("a")
                try await fleet.submit("g", origin.serveFiles("f", sizes: [10]))
                try await fleet.waitForEnd(of: "g")
                let held = try await start(
                    fleet, "{ sleep 600 & echo $$ $! > seen; wait; }", options: ["--types", "group.succeeded"])
                try await eventually("the command") { lines(fleet).count == 1 }
                let processes = lines(fleet)[0].split(separator: " ").compactMap { Int32($0) }
                #expect(processes.count == 2)
                // The process alone, not its group.
                #expect(kill(held.processID, SIGKILL) == 0)
                for process in processes { try await ProcessTree.waitForEnd(of: process) }
            }
        }

        @Test func twoConsumersOfOneNameNeverRunTheirCommandsAtOnce() async throws {
            let origin = try await ScriptedOrigin.start()
            try await Fleet.run { fleet in
                try await fleet.startWorker("a")
                try await fleet.submit("g", origin.serveFiles("f", sizes: [10]))
                try await fleet.waitForEnd(of: "g")
                let script = #"echo "$MUSTER_EVENT_ID" >> seen; while ! test -e go; do sleep 0.05; done"#
                let first = try await start(fleet, script)
                try await eventually("the first command") { lines(fleet).count == 1 }
                let second = try await start(fleet, script)
                try await second.waitForLine(containing: "another process deals with", in: .standardError)
                #expect(lines(fleet).count == 1)
                #expect(FileManager.default.createFile(atPath: fleet.scratch.appending("go").string, contents: nil))
                try await waitUntilCaughtUp(fleet)
                let ids = try await fleet.log().map(\.id)
                #expect(lines(fleet) == ids, "each once, by the first one")
                // The second consumer goes on when the first one ends.
                try first.signal(SIGTERM)
                #expect(try await first.waitForExit() == .exited(0))
                try await fleet.submit("h", origin.serveFiles("h", sizes: [10]))
                try await fleet.waitForEnd(of: "h")
                try await waitUntilCaughtUp(fleet)
                #expect(lines(fleet) == (try await fleet.log().map(\.id)))
                try second.signal(SIGTERM)
                #expect(try await second.waitForExit() == .exited(0))
            }
        }

        @Test func aCommandThatFailsIsRunAgainBeforeTheNextEvent() async throws {
            let origin = try await ScriptedOrigin.start()
            try await Fleet.run { fleet in
                try await fleet.startWorker("a")
                try await fleet.submit("g", origin.serveFiles("f", sizes: [10]))
                try await fleet.waitForEnd(of: "g")
                let script = #"echo "$MUSTER_EVENT_ID" >> seen; test "$(wc -l < seen)" -gt 1"#
                let consumer = try await start(fleet, script)
                try await waitUntilCaughtUp(fleet)
                let ids = try await fleet.log().map(\.id)
                #expect(lines(fleet) == [ids[0]] + ids)
                #expect(consumer.standardError.contains("exited with 1; again in 1s"))
                try consumer.signal(SIGTERM)
                #expect(try await consumer.waitForExit() == .exited(0))
            }
        }

        @Test func aRunningCommandMayFinishWhenTheConsumerIsToldToStop() async throws {
            let origin = try await ScriptedOrigin.start()
            try await Fleet.run { fleet in
                try await fleet.startWorker("a")
                try await fleet.submit("g", origin.serveFiles("f", sizes: [10]))
                try await fleet.waitForEnd(of: "g")
                let script = "echo run >> started; while ! test -e go; do sleep 0.05; done; echo run >> seen"
                let consumer = try await start(fleet, script, options: ["--types", "group.succeeded"])
                try await eventually("the command") { lines(fleet, "started").count == 1 }
                try consumer.signal(SIGTERM)
                #expect(FileManager.default.createFile(atPath: fleet.scratch.appending("go").string, contents: nil))
                #expect(try await consumer.waitForExit() == .exited(0))
                #expect(lines(fleet).count == 1)
                // The event was acknowledged, so the command isn't run again for it.
                let place = try await fleet.client().consumers().items.first { $0.name == "c" }?.position
                let end = try await fleet.log().first { $0.type == "dev.muster.group.succeeded.v1" }?.position
                #expect(place == end)
            }
        }
    }
}
