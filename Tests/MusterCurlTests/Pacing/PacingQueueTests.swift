import Testing

@testable import MusterCurl

struct PacingQueueTests {
    private func id(_ value: UInt64) -> TransferID { TransferID(lane: .http, value: value) }

    @Test func transfersGoOnInTheOrderInWhichTheyBeganToWait() {
        let queue = PacingQueue()
        for value in 1...3 { queue.add(id(UInt64(value)), wait: 10, at: 0) }
        #expect(queue.earliest == 10)
        var visited: [UInt64] = []
        queue.visit(at: 9) { _ in
            Issue.record("nobody is due")
            return 0
        }
        queue.visit(at: 10) { id in
            visited.append(id.value)
            // The first transfer takes all there is and waits anew; the others find nothing.
            if id.value == 1 { queue.add(id, wait: 20, at: 10) }
            return id.value == 1 ? 0 : 5
        }
        #expect(visited == [1, 2, 3])
        #expect(queue.earliest == 15)
        queue.visit(at: 30) { id in
            visited.append(id.value)
            return 0
        }
        #expect(visited == [1, 2, 3, 2, 3, 1])
        #expect(queue.earliest == .max)
    }

    @Test func waitingTransferIsVisitedEveryQuarterOfASecond() {
        let queue = PacingQueue()
        queue.add(id(1), wait: nil, at: 0)
        queue.add(id(2), wait: .max, at: 5)
        #expect(queue.earliest == 250_000_000)
        queue.visit(at: 250_000_000) { _ in nil }
        #expect(queue.earliest == 250_000_005)
        queue.visit(at: 250_000_005) { $0.value == 2 ? 0 : nil }
        #expect(queue.earliest == 500_000_000)
    }
}
