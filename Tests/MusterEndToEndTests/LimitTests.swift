import MusterAPI
import MusterCore
import MusterTestSupport
import Testing

extension EndToEnd {
    /// The limits, hours and prerequisites of groups, as they are typed.
    @Suite struct Limits {
        @Test func aChangedGroupShowsItAndNoneTakesItAway() async throws {
            try await Fleet.run { fleet in
                _ = try await fleet.muster(["add", "g", "--open", "--rate", "5MiB/s", "--weight", "2"])
                let made = try await fleet.client().group("g")
                #expect(made.limits == GroupLimits(bytesPerSecond: 5 << 20) && made.weight == 2)

                let changed = try await fleet.muster([
                    "limit", "g", "--priority", "7", "--max-connections", "3", "--between", "22:00-06:00", "--tz",
                    "Europe/Berlin", "--rate-between", "08:00-18:00=1MiB/s", "--deadline", "2h", "--on-deadline",
                    "continue",
                ])
                let window = TimeWindow(from: "22:00", to: "06:00", timeZone: "Europe/Berlin")
                let group = try await fleet.client().group("g")
                #expect(group.priority == 7 && group.limits.maxConnections == 3 && group.limits.between == window)
                #expect(group.limits.bytesPerSecond == 5 << 20 && group.limits.timetable?.count == 1)
                #expect(group.deadlineAt != nil && group.onDeadline == .continue)
                #expect(changed.standardOutput.contains("runs:       from 22:00 to 06:00 Europe/Berlin"))
                // New hours are in the zone that the group has.
                let later = try await fleet.muster(["limit", "g", "--between", "23:00-05:00"])
                #expect(later.standardOutput.contains("runs:       from 23:00 to 05:00 Europe/Berlin"))

                _ = try await fleet.muster([
                    "limit", "g", "--max-connections", "none", "--rate", "none", "--between", "none", "--rate-between",
                    "none", "--deadline", "none",
                ])
                let freed = try await fleet.client().group("g")
                #expect(freed.limits == GroupLimits() && freed.deadlineAt == nil && freed.priority == 7)
            }
        }

        @Test func aTokenThatIsRefusedIsReplacedAsTheHintSays() async throws {
            try await Fleet.run { fleet in
                try await fleet.startWorker("w1")
                let origin = try await ScriptedOrigin.start()
                let file = origin.serveFile("secret.bin", size: 1_000)
                origin.misbehave("/\(file.path)", .requires(.header(.init("X-Token", "new-one"))))
                let failed = try await fleet.muster(
                    ["add", "g", "--header", "X-Token: old-one", "--wait", file.url], expecting: 1)
                #expect(failed.standardError.contains("changed with: muster set g …, and then: muster retry g"))
                let nothing = try await fleet.muster(["set", "g"], expecting: 2)
                #expect(nothing.standardError.contains("muster help set"))
                let set = try await fleet.muster(["set", "g", "--header", "X-Token: new-one"])
                #expect(
                    set.standardOutput.contains("its sources are asked with headers from now on")
                        && set.standardOutput.contains("1 task has failed; put it back with: muster retry g"))
                #expect(!set.standardOutput.contains("new-one"))
                _ = try await fleet.muster(["retry", "g"])
                _ = try await fleet.muster(["wait", "g"])
                try await fleet.check("g", [file], endings: [.failed, .succeeded])
            }
        }

        @Test func refusalByTheCoordinatorIsSix() async throws {
            try await Fleet.run { fleet in
                _ = try await fleet.muster(["add", "a", "--open"])
                let zone = ["limit", "a", "--between", "22:00-06:00", "--tz", "Europe/Atlantis"]
                #expect(try await fleet.muster(zone, expecting: 6).standardError.contains("invalidRequest"))
                _ = try await fleet.muster(["limit", "nobody", "--rate", "1MiB/s"], expecting: 6)
                _ = try await fleet.muster(["limit", "a", "--after", "nobody"], expecting: 6)
                _ = try await fleet.muster(["add", "b", "--open", "--after", "a"])
                _ = try await fleet.muster(["limit", "a", "--after", "b"], expecting: 6)
            }
        }

        @Test func aGroupThatWaitsForAnotherBeginsWhenThatHasEnded() async throws {
            let origin = try await ScriptedOrigin.start()
            try await Fleet.run { fleet in
                try await fleet.startWorker("a")
                let (first, second) = (origin.serveFile("first", size: 10), origin.serveFile("second", size: 20))
                _ = try await fleet.muster(["add", "first", "--open"])
                _ = try await fleet.muster(["add", "second", "--after", "first:finished", second.url])
                #expect(try await fleet.client().group("second").after?.first?.satisfied == false)
                _ = try await fleet.muster(["add", "first", first.url, "--wait"])
                _ = try await fleet.muster(["wait", "second"])
                try await fleet.waitForEnd(of: "second")
                let ends = try await fleet.log().filter { $0.type == "dev.muster.group.succeeded.v1" }.map(\.subject)
                #expect(ends == ["groups/first", "groups/second"])
                try await fleet.check("second", [second])
            }
        }

        @Test func addingToAFinishedGroupMustBeSaid() async throws {
            let origin = try await ScriptedOrigin.start()
            try await Fleet.run { fleet in
                try await fleet.startWorker("a")
                let (first, second) = (origin.serveFile("first", size: 10), origin.serveFile("second", size: 20))
                _ = try await fleet.muster(["add", "g", first.url, "--wait"])
                let refused = try await fleet.muster(["add", "g", second.url], expecting: 6)
                #expect(refused.standardError.contains("--reopen"))
                // A task that is there already doesn't reopen the group.
                _ = try await fleet.muster(["add", "g", "--reopen", first.url])
                #expect(try await fleet.client().group("g").generation == 1)
                _ = try await fleet.muster(["add", "g", "--reopen", second.url, "--wait"])
                try await fleet.check("g", [first, second], endings: [.succeeded, .succeeded])
            }
        }
    }
}
