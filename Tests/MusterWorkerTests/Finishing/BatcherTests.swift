import MusterTestSupport
import Testing

@testable import MusterWorker

@Suite struct BatcherTests {
    @Test func ordersThatArriveMeanwhileTravelTogether() async throws {
        let batches = Observed<[[Int]]>([])
        let mayGoOn = Observed(false)
        let batcher = Batcher<Int, Int>(lanes: 1, limit: 100) { orders in
            batches.update { $0.append(orders) }
            _ = try? await mayGoOn.wait(for: "leave to go on") { $0 }
            return orders.map { $0 * 2 }
        }
        let sum = try await withThrowingTaskGroup(of: Int.self) { group in
            group.addTask { await batcher.submit(1) ?? -1 }
            try await batches.wait(for: "the first batch") { $0.count == 1 }
            for order in 2...50 { group.addTask { await batcher.submit(order) ?? -1 } }
            mayGoOn.update { $0 = true }
            return try await group.reduce(0, +)
        }
        #expect(sum == 2 * (50 * 51 / 2))
        #expect(batches.value.first == [1])
        #expect(batches.value.flatMap { $0 }.sorted() == Array(1...50))
    }

    @Test func batchesStayWithinTheirLimit() async throws {
        let largest = Observed(0)
        let batcher = Batcher<Int, Int>(lanes: 2, limit: 3) { orders in
            largest.update { $0 = max($0, orders.count) }
            await Task.yield()
            return orders
        }
        let count = await withTaskGroup(of: Int?.self) { group in
            for order in 0..<200 { group.addTask { await batcher.submit(order) } }
            return await group.reduce(0) { $1 == nil ? $0 : $0 + 1 }
        }
        #expect(count == 200)
        #expect(largest.value <= 3)
    }

    @Test func orderWithoutAnOutcomeGivesNil() async {
        let batcher = Batcher<Int, Int>(lanes: 1, limit: 10) { _ in [] }
        #expect(await batcher.submit(1) == nil)
    }
}
