import MusterPostgres
import MusterStore
import Synchronization

/// The wakes that a store has sent.
final class WakeLog: Sendable {
    private let woken = Mutex(Wake())

    func add(_ wake: Wake) { woken.withLock { $0.formUnion(wake) } }

    /// All wakes since the last call.
    func take() -> Wake {
        woken.withLock { woken in
            defer { woken = [] }
            return woken
        }
    }
}

/// Checks after every step that no verb forgot a wake: new ready chunks must wake sessions, and new events must wake their readers.
struct WakeWatch: Sendable {
    private var leasable: Set<Int64> = []
    private var events: Int64 = 0

    /// Returns the forgotten wakes, in words.
    mutating func compare(_ fixture: StoreFixture) async throws -> [String] {
        let wake = fixture.wakes.take()
        let leasable = Set(
            try await fixture.values("SELECT id FROM ready_chunks WHERE status = 'ready'", as: Int64.self))
        let events: Int64 = try await fixture.value(
            "SELECT (SELECT count(*) FROM events) + (SELECT count(*) FROM pending_events)")
        defer { (self.leasable, self.events) = (leasable, events) }
        var forgotten: [String] = []
        if !leasable.isSubset(of: self.leasable), !wake.contains(.work) {
            forgotten.append(
                "chunks \(leasable.subtracting(self.leasable).sorted()) became ready, and nobody was woken")
        }
        if events > self.events, !wake.contains(.events) {
            forgotten.append("\(events - self.events) events were written, and nobody was woken")
        }
        return forgotten
    }
}
