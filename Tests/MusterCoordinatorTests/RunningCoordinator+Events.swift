import MusterAPI
import MusterCore
import MusterTestSupport
import Testing

@testable import MusterCoordinator

extension RunningCoordinator {
    /// Makes one event of each group: an empty sealed group has succeeded.
    func makeEvents(_ groups: [String]) async throws {
        for group in groups { _ = try await client.createGroup(GroupRequest(name: group, sealed: true)) }
    }

    /// The same for groups `prefix1`, `prefix2`, …
    func makeEvents(_ count: Int, _ prefix: String = "g") async throws {
        try await makeEvents((1...count).map { "\(prefix)\($0)" })
    }

    /// Waits until the log has reached a position: positions are assigned after the commits.
    func waitForEvents(upTo position: Int64) async throws {
        var next: Int64 = 0
        while next < position {
            let page = try await client.events(after: next, wait: .seconds(5))
            try #require(page.next > next, "the log ends at \(next)")
            next = page.next
        }
    }

    /// Waits until the coordinator's deliveries meet a condition, and returns them.
    @discardableResult
    func deliveries(
        _ what: String, state: DeliveryState? = nil, until condition: ([DeliveryDocument]) -> Bool
    ) async throws -> [DeliveryDocument] {
        try await eventually(what) {
            let items = try await client.deliveries(state: state, limit: 1_000).items
            return condition(items) ? items : nil
        }
    }
}

extension CoordinatorConfiguration {
    /// Compresses the three days of tries into a second.
    mutating func deliverQuickly(tries: Int = 10) {
        delivery.schedule = DeliverySchedule(
            waits: [.zero] + Array(repeating: .milliseconds(50), count: tries - 1), jitter: 0.1)
        delivery.timeout = .milliseconds(500)
        delivery.claimMargin = .seconds(1)
        delivery.poll = .milliseconds(20)
    }
}
