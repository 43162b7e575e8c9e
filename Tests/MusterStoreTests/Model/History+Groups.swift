import MusterCore
import MusterStore

@testable import MusterStoreModel

/// Time-driven changes of groups, and changes of their settings.
extension History {
    /// Runs a coordinator's regular sweeps.
    mutating func sweep() async throws {
        log("sweep groups and purges")
        model.sweepGroups()
        _ = try await store.sweepGroups()
        model.releasePurges()
        _ = try await store.releasePurges()
    }

    /// Changes a group's deadline, window or prerequisites.
    mutating func change() async throws {
        let name = someGroup()
        guard let group = model.groups[name] else { return }
        switch Int.random(in: theme == .groups ? 1..<16 : 0..<10, using: &random) {
        case 0..<2 where !group.state.isTerminal:
            let fails = chance(60)
            log("the time for \(name) is over: \(fails ? "it fails" : "it goes on")")
            model.expire(name, fails: fails)
            model.sweepGroups()
            try await fixture.passDeadline(of: name, fails ? .fail : .continue)
            _ = try await store.sweepGroups()
        case 2..<5:
            let isClosed = !group.isClosed
            log("the window of \(name) \(isClosed ? "closes" : "opens")")
            model.groups[name]?.isClosed = isClosed
            try await fixture.setWindow(of: name, isOpen: !isClosed)
            if chance(70) { try await sweep() }
        default:
            let other = ["g1", "g2", "g3"].filter { $0 != name }.randomElement(using: &random) ?? "g2"
            let wanted = chance(30) ? [] : [GroupPrerequisite(group: other, on: chance(50) ? .succeeded : .finished)]
            log("\(name) waits for \(wanted.map { "\($0.group) \($0.on)" })")
            let isAccepted = model.setPrerequisites(wanted, of: name)
            do {
                _ = try await store.change(name, GroupChange(prerequisites: wanted))
                expect(isAccepted, "the prerequisites were accepted")
            } catch is Store.Refusal {
                expect(!isAccepted, "the prerequisites were refused")
            }
            if chance(50) { try await sweep() }
        }
    }
}
