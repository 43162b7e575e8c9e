import MusterAPI
import MusterCore
import Testing

@testable import MusterCoordinator
@testable import MusterStore

/// What is told of a group that gets nothing, since other groups are served first.
@Suite("Groups behind more urgent ones")
struct UrgentGroupTests {
    private static let key = "https://a.example:443"
    private static let full = "the origin https://a.example:443 has all of the 8 connections that it may have now"

    private static func urgent(_ names: String..., count: Int64? = nil, priority: Int32 = 5) -> UrgentGroups {
        UrgentGroups(names: names, count: count ?? Int64(names.count), priority: priority)
    }

    /// A group of which nothing is under way, since its origin is full.
    private static func group() -> GroupFacts {
        var facts = GroupExplanationTests.facts()
        (facts.group.tasks.queued, facts.group.tasks.active) = (8, 0)
        facts.situation.leases.connections = 0
        facts.situation.origins = [GroupExplanationTests.origin(own: 0, ready: 8)]
        facts.situation.origins[0].origin.connections = 8
        return facts
    }

    @Test func aGroupBehindMoreUrgentOnesNamesThemAndWhatHelps() {
        var facts = Self.group()
        facts.situation.urgent = [Self.key: Self.urgent("high")]
        let document = GroupExplanation(facts: facts).document
        #expect(document.waits.map(\.reason) == [.originFull])
        #expect(
            document.waits[0].detail
                == #"\#(Self.full); the group "high", which has a higher priority, takes every one that comes free"#)
        #expect(
            document.next
                == "it goes on when that group has nothing more to begin at the same origin; to share with it: "
                + "muster limit g --priority 5")
        facts.situation.urgent = [Self.key: Self.urgent("a", "b", "c", count: 7)]
        let more = GroupExplanation(facts: facts).document
        #expect(
            more.waits[0].detail.hasSuffix(
                #"; the groups "a", "b", "c" and 4 more, which have a higher priority, take every one that comes free"#
            ))
        #expect(
            more.next
                == "it goes on when those groups have nothing more to begin at the same origin; to be served with the "
                + "most urgent of them: muster limit g --priority 5")
        facts.situation.urgent = [Self.key: Self.urgent("a", "b", "c", count: UrgentGroups.considered)]
        let most = GroupExplanation(facts: facts).document
        #expect(most.waits[0].detail.contains(#" "c" and at least 97 more, which "#))
    }

    @Test func aGroupGoesOnWithTheOriginThatNoUrgentGroupKeeps() {
        var facts = Self.group()
        facts.situation.origins.append(GroupExplanationTests.origin("b", own: 0, ready: 2))
        facts.situation.origins[1].origin.connections = 8
        facts.situation.urgent = [Self.key: Self.urgent("high")]
        let document = GroupExplanation(facts: facts).document
        #expect(document.waits.map(\.detail) == ["2 of its origins have as many connections as they may have now"])
        #expect(document.next == "it goes on when another transfer from there ends")
    }

    @Test func aTaskBehindMoreUrgentGroupsNamesThemToo() {
        var facts = ExplanationTests.facts()
        facts.situation.origins = [.sample("a", connections: 8)]
        #expect(Explanation(facts: facts).document.next == "it goes on when another transfer from there ends")
        facts.situation.urgent = [Self.key: Self.urgent("high")]
        let document = Explanation(facts: facts).document
        #expect(document.waits.map(\.reason) == [.originFull])
        #expect(
            document.waits[0].detail
                == #"\#(Self.full); the group "high", which has a higher priority, takes every one that comes free"#)
        #expect(document.next?.hasSuffix("muster limit g --priority 5") == true)
    }

    @Test func whereAllWorkersAreBusyMoreUrgentGroupsAreNamedToo() {
        var group = Self.group()
        group.situation.origins[0].origin.connections = 1
        group.situation.urgentForSlots = Self.urgent("high")
        // A rate so small that every speed uses it up is not what a group without any transfer waits for.
        (group.bytesPerSecondAllowed, group.group.bytesPerSecond) = (100, 0)
        let document = GroupExplanation(facts: group).document
        let detail =
            #"every worker that reaches the sink "default" is busy; the group "high" of a higher priority comes first"#
        #expect(document.waits.map(\.detail) == [detail])
        #expect(document.next?.hasSuffix("muster limit g --priority 5") == true)
        group.bytesPerSecondAllowed = nil
        group.workers.freeSlots = 1
        #expect(GroupExplanation(facts: group).document.next == "a worker takes it as soon as it has room")
        var task = ExplanationTests.facts()
        task.situation.urgentForSlots = group.situation.urgentForSlots
        #expect(Explanation(facts: task).document.next == "a worker takes it as soon as it has room")
        task.workers.freeSlots = 0
        #expect(Explanation(facts: task).document.waits.map(\.detail) == [detail])
        #expect(Explanation(facts: task).document.next?.hasSuffix("muster limit g --priority 5") == true)
    }

    @Test func theGroupsOfSeveralOriginsAreNamedTogether() {
        let all = ["a": Self.urgent("x", "y"), "b": Self.urgent("y", "z", "w", count: 9, priority: 7)]
        #expect(UrgentGroups(at: ["a", "b"], in: all) == Self.urgent("x", "y", "z", count: 9, priority: 7))
        #expect(UrgentGroups(at: ["a", "c"], in: all) == nil && UrgentGroups(at: [], in: all) == nil)
    }

    @Test func aStatusSaysInShortWhatAGroupWaitsFor() async throws {
        try await RunningCoordinator.with { coordinator in
            let client = coordinator.client
            let origin = "http://127.0.0.1:1"
            func make(_ name: String, priority: Int32, port: Int = 1) async throws {
                let tasks = (1...2).map { TaskRequest(urls: ["http://127.0.0.1:\(port)/\(name)\($0)"], size: 10) }
                _ = try await client.createGroup(
                    GroupRequest(name: name, sealed: true, priority: priority, tasks: tasks))
            }
            try await make("high", priority: 9)
            _ = try await client.setOrigin(origin, OriginPatch(maxConnections: .set(1)))
            let session = try await client.openSession(
                SessionRequest(name: "w", sinks: ["default"], slots: 1, version: "test"))
            #expect(try await client.group("high").notes.isEmpty, "a worker is about to take it")
            let grants = try await client.sync(session.id, SyncRequest(sequence: 1, settled: 0, room: 1))
            try #require(grants.leases.count == 1)
            try await make("low", priority: 0)
            try await make("same", priority: 9)
            try await make("middle", priority: 5)
            try await make("other", priority: 0, port: 2)
            let urgent = #""high", "same""#
            let notes: [String: [String]] = [
                "high": [], "other": [#"every worker that reaches the sink "default" is busy"#],
                "low": [
                    #"it waits for a connection to \#(origin) behind the groups \#(urgent), "middle" of a higher priority"#
                ],
                "middle": [
                    #"it waits for a connection to \#(origin) behind the groups \#(urgent) of a higher priority"#
                ],
                "same": ["it waits for a free connection to \(origin)"],
            ]
            let listed = try await client.groups(limit: 10).items
            #expect(Dictionary(uniqueKeysWithValues: listed.map { ($0.name, $0.notes) }) == notes)
            #expect(try await client.group("low").notes == notes["low"])
            // The priority of "middle" would leave the group behind the others.
            let help = try await client.groupExplanation(of: "low").next
            #expect(
                help?.hasSuffix("; to be served with the most urgent of them: muster limit low --priority 9") == true)
        }
    }
}
