import MusterCore
import MusterStore
import Synchronization
import Testing

@testable import MusterCoordinator

/// Which syncs cost a statement while a check is under way (adr/0048).
@Suite struct CheckDeskTests {
    /// A store that counts the steps of sessions.
    private final class CountingStore: CheckStore {
        let walks: [OpenWalk]
        let steps = Mutex<[SessionID]>([])

        init(_ walks: [OpenWalk]) {
            self.walks = walks
        }

        func openWalks() async throws -> [OpenWalk] { walks }

        func checkStep(of session: SessionID, report: CheckReport?) async throws -> CheckOrder? {
            steps.withLock { $0.append(session) }
            return nil
        }
    }

    @Test func onlyTheHolderOfAWalkAndThoseThatMayTakeOneAskTheDatabase() async throws {
        let store = CountingStore([
            OpenWalk(sink: "held", holder: SessionID(1)), OpenWalk(sink: "free", holder: nil),
        ])
        let desk = CheckDesk(store: store)
        func asks(_ session: Int64, _ sinks: [String], report: CheckReport? = nil) async throws -> Bool {
            let before = store.steps.withLock { $0.count }
            _ = try await desk.page(for: SessionID(session), reaching: sinks, report: report)
            return store.steps.withLock { $0.count } > before
        }
        #expect(try await asks(1, ["held"]))
        #expect(try await asks(2, ["held"]) == false, "another session holds the walk")
        #expect(try await asks(2, ["done"]) == false)
        #expect(try await asks(2, ["held", "free"]))
        #expect(try await asks(3, []), "it may reach any sink")
        let report = CheckReport(on: CheckOrder(sink: "held", epoch: 1, step: 1, kind: .names))
        #expect(try await asks(2, ["held"], report: report))
    }
}
