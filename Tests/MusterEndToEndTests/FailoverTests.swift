import MusterAPI
import MusterCore
import MusterTestSupport
import SystemPackage
import Testing

extension EndToEnd {
    /// A server of the database that is lost for good: a standby or a backup takes its place (F5, F24).
    @Suite struct Failover {
        /// The largest number of each kind that has been given out (I1).
        private static let largestNumber = """
            SELECT greatest((SELECT max(id) FROM tasks), (SELECT max(id) FROM groups), (SELECT max(id) FROM sessions),
                (SELECT last_value FROM chunk_ids), (SELECT last_value FROM lease_epochs), (SELECT last_value FROM lane_ids))
            """

        @Test func synchronousStandbyTakesOverUnderLoadAndHasAllThatWasAcknowledged() async throws {
            var random = SeededGenerator.forTest()
            let load = try await Load(&random)
            let primary = try await TestPostgres.start(settings: PostgresCopy.sourceSettings(isSynchronous: true))
            let standby = try await PostgresCopy(of: primary)
            try await standby.copySource()
            try await standby.start(as: .standby)
            // Its lease is there for as long as the test looks for one.
            let held = load.origin.serveFile("held", size: .kibibytes(300), seed: random.next())
            load.origin.hold("/held", afterBytes: .kibibytes(100))
            try await Fleet.run(on: primary, followedBy: [standby], coordinators: 2) { fleet in
                for name in ["a", "b"] { try await fleet.startWorker(name) }
                try await fleet.submit("held", [held])
                try await load.origin.waitUntil("/held", bytesSent: .kibibytes(100))
                try await fleet.submit("g", load.files)
                let additions = Additions(seed: random.next())
                async let adding: Void = additions.run(fleet, load.origin)
                try await additions.added.wait(for: "acknowledged additions") { $0.count >= 3 }
                try await load.waitForShare(from: 0.1, to: 0.3, &random)

                let read = try await fleet.log()
                let largest = try await fleet.number(Self.largestNumber, at: primary.socketDirectory)
                try await primary.crash()
                let lost = ContinuousClock.now
                let before = additions.added.value
                try await standby.promote()
                let promoted = ContinuousClock.now
                // The sessions of before are over: only a new one is granted leases.
                try await eventually("a lease of a new session") {
                    try await fleet.number(
                        "SELECT count(*) FROM leases WHERE session_id > \(largest)", at: standby.socketDirectory) > 0
                }
                print("no lease could be granted for \(ContinuousClock.now - lost); promotion: \(promoted - lost)")
                let epoch = try await fleet.number("SELECT min(epoch) FROM leases", at: standby.socketDirectory)
                #expect(epoch > largest + 1 << 30, "epochs go on where none can have been given out")

                try await additions.added.wait(for: "additions after the failover") { $0.count >= before.count + 3 }
                additions.isOver.update { $0 = true }
                try await adding
                load.hurry()
                load.origin.release("/held")
                var groups: [String: [WantedFile]] = ["g": load.files, "held": [held]]
                for file in additions.added.value { groups[file.path] = [file] }
                for (group, files) in groups {
                    try await fleet.waitForEnd(of: group)
                    try await fleet.check(group, files)
                }
                // What was read by position is there at its position, and the positions go on without a gap.
                let log = try await fleet.log()
                #expect(log.count > read.count && Array(log.prefix(read.count)) == read)
            }
            try await standby.stop()
        }

        @Test func workersOfALostPastTouchNothingOfWhatTheStandbyHas() async throws {
            let origin = try await ScriptedOrigin.start()
            let size = Int64.kibibytes(300)
            let kept = origin.serveFiles("kept", sizes: [size, size, size], seed: 1)
            let lost = origin.serveFiles("lost", sizes: [size, size, size], seed: 2)
            let fresh = origin.serveFiles("fresh", sizes: [Int64](repeating: 1_000, count: 150), seed: 3)
            for file in kept + lost { origin.hold("/\(file.path)", afterBytes: .kibibytes(100)) }
            let primary = try await TestPostgres.start(settings: PostgresCopy.sourceSettings())
            let standby = try await PostgresCopy(of: primary)
            try await standby.copySource()
            try await standby.start(as: .standby)
            try await Fleet.run(on: primary, followedBy: [standby], coordinators: 2, timeToLive: "60s") { fleet in
                let worker = try await fleet.startWorker("a", slots: 8)
                try await fleet.submit("kept", kept)
                for file in kept { try await origin.waitUntil("/\(file.path)", bytesSent: .kibibytes(100)) }
                try await standby.catchUp()
                try await standby.stop()
                // A standby has the numbers of a sequence up to 32 ahead. Those of the lost group are beyond that, and not beyond
                // those that the fresh group would get.
                _ = try await fleet.number(
                    """
                    SELECT count(nextval('task_ids') + nextval('chunk_ids') + nextval('lease_epochs')) FROM generate_series(1, 50)
                    """, at: primary.socketDirectory)
                try await fleet.submit("lost", lost)
                for file in lost { try await origin.waitUntil("/\(file.path)", bytesSent: .kibibytes(100)) }
                let largest = try await fleet.number(Self.largestNumber, at: primary.socketDirectory)
                try await primary.crash()

                // The worker finishes the files, and can't report it to any coordinator.
                for file in lost { origin.release("/\(file.path)") }
                for file in lost {
                    try await eventually("\(file.path) in place") {
                        (try? FileDigest.sha256(fleet.sink.appending(file.path))) == file.sha256
                    }
                }
                try await standby.start(as: .standby)
                try await standby.promote()
                try await fleet.add("fresh", fresh)
                try await fleet.waitForNewSession(of: worker)
                await #expect {
                    try await fleet.persistently { client in try await client.group("lost") }
                } throws: { error in
                    (error as? Problem)?.status == 404
                }
                for file in kept { origin.release("/\(file.path)") }
                for (group, files) in [("kept", kept), ("fresh", fresh)] {
                    try await fleet.waitForEnd(of: group)
                    try await fleet.check(group, files)
                }
                let smallest = try await fleet.number(
                    "SELECT min(t.id) FROM tasks t JOIN groups g ON g.id = t.group_id WHERE g.name = 'fresh'",
                    at: standby.socketDirectory)
                #expect(smallest > largest, "no task has the number of a lost one")
                // The lost group can be added again, though its files are there already.
                try await fleet.add("lost", lost)
                try await fleet.waitForEnd(of: "lost")
                try await fleet.check("lost", lost)
            }
            try await standby.stop()
        }

        @Test func numbersOfABackupThatIsRestoredTwiceDoNotRecur() async throws {
            let origin = try await ScriptedOrigin.start()
            let size = Int64.kibibytes(300)
            let files = origin.serveFiles("g", sizes: [size, size, size], seed: 1)
            for file in files { origin.hold("/\(file.path)", afterBytes: .kibibytes(100)) }
            let primary = try await TestPostgres.start(settings: PostgresCopy.sourceSettings())
            let first = try await PostgresCopy(of: primary)
            let second = try await PostgresCopy(of: primary)
            try await Fleet.run(on: primary, followedBy: [first, second]) { fleet in
                try await fleet.startWorker("a", slots: 8)
                try await fleet.submit("g", files)
                for file in files { try await origin.waitUntil("/\(file.path)", bytesSent: .kibibytes(100)) }
                try await first.copySource()
                try await second.copy(first)

                var largest: Int64 = 0
                let hosts = [await primary.socketDirectory, first.socketDirectory]
                for (round, host) in hosts.enumerated() {
                    let name = "after\(round)-"
                    let later = origin.serveFiles(
                        name, sizes: [Int64](repeating: 1_000, count: 50), seed: UInt64(round) + 10)
                    try await fleet.add(name, later)
                    try await fleet.waitForEnd(of: name)
                    for file in later {
                        #expect(try FileDigest.sha256(fleet.sink.appending(file.path)) == file.sha256)
                    }
                    let number = try await fleet.number(Self.largestNumber, at: host)
                    #expect(number > largest)
                    largest = number
                    if round == 0 {
                        try await primary.crash()
                        try await first.start(as: .restored)
                    } else {
                        try await first.crash()
                        try await second.start(as: .restored)
                    }
                    let groups = try await fleet.persistently { try await $0.groups() }.items.map(\.name)
                    #expect(groups == ["g"], "only what is in the backup is there")
                }
                let last = origin.serveFiles("last", sizes: [Int64](repeating: 1_000, count: 50), seed: 20)
                try await fleet.add("last", last)
                for file in files { origin.release("/\(file.path)") }
                for (group, files) in [("g", files), ("last", last)] {
                    try await fleet.waitForEnd(of: group)
                    try await fleet.check(group, files)
                }
                let smallest = try await fleet.number(
                    "SELECT min(t.id) FROM tasks t JOIN groups g ON g.id = t.group_id WHERE g.name = 'last'",
                    at: second.socketDirectory)
                #expect(smallest > largest, "neither of the two lost pasts has a task of this number")
            }
            try await second.stop()
        }

        /// The machine of the former primary is switched on again, and the connection string names it first.
        @Test func coordinatorsDoNotGoBackToAFormerPrimary() async throws {
            let origin = try await ScriptedOrigin.start()
            let primary = try await TestPostgres.start(settings: PostgresCopy.sourceSettings())
            let standby = try await PostgresCopy(of: primary)
            try await standby.copySource()
            try await standby.start(as: .standby)
            try await Fleet.run(on: primary, followedBy: [standby]) { fleet in
                try await standby.catchUp()
                try await primary.crash()
                try await standby.promote()
                for group in ["before", "after"] {
                    let files = origin.serveFiles(group, sizes: [1_000, 1_000])
                    try await fleet.add(group, files)
                    if group == "before" { try await fleet.startWorker("a") }
                    try await fleet.waitForEnd(of: group)
                    try await fleet.check(group, files)
                    guard group == "before" else { continue }
                    try await primary.start()
                    // The coordinator connects anew.
                    let ended = try await fleet.number(
                        """
                        SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'muster-coordinator'
                        """, at: standby.socketDirectory)
                    #expect(ended > 0)
                }
                let strays = try await fleet.number("SELECT count(*) FROM groups", at: primary.socketDirectory)
                #expect(strays == 0)
            }
            try await standby.stop()
        }
    }
}

/// Groups of one file each that are added one after the other, and those of their files whose addition was acknowledged.
private struct Additions: Sendable {
    let added = Observed<[WantedFile]>([])
    let isOver = Observed(false)
    let seed: UInt64

    /// Adds until it is over, at most 1,000 times. While the database is away the command fails.
    func run(_ fleet: Fleet, _ origin: ScriptedOrigin) async throws {
        var number = 0
        while !isOver.value, number < 1_000 {
            let file = origin.serveFile("n\(number)", size: .kibibytes(4), seed: seed &+ UInt64(number))
            let command = try await fleet.muster(["add", file.path, file.url], expecting: nil)
            if command.exit == .exited(0) { added.update { $0.append(file) } }
            number += 1
        }
    }
}
