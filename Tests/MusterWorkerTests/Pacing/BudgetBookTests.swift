import MusterAPI
import MusterCore
import MusterCurl
import MusterTestSupport
import Testing

@testable import MusterWorker

struct BudgetBookTests {
    private func limited(_ chunk: Int64, group: String? = "g", origin: String? = "http://a:80") -> LeaseDocument {
        var document = lease(chunk)
        document.group = group
        document.origin = origin
        return document
    }

    @Test func leaseComesUnderItsGroupItsOriginTheFleetAndTheWorker() {
        let book = BudgetBook(bytesPerSecond: 7)
        #expect(limited(1).budgetNames == ["group:g", "origin:http://a:80", "fleet"])
        #expect(book.enter(limited(1)).map(\.bytesPerSecond) == [nil, nil, nil, 7])
        #expect(book.enter(limited(2, group: nil, origin: nil)).map(\.bytesPerSecond) == [nil, 7])
        #expect(BudgetBook().enter(limited(1)).map(\.bytesPerSecond) == [nil, nil, nil])
        #expect(lease(1, kind: .purge).budgetNames == [])
    }

    @Test func sharesHoldForRunningAndForLaterLeasesUntilTheyAreMissing() {
        let book = BudgetBook()
        let running = book.enter(limited(1))
        book.adopt([BudgetShare(name: "group:g", bytesPerSecond: 10), BudgetShare(name: "fleet", bytesPerSecond: 20)])
        #expect(running.map(\.bytesPerSecond) == [10, nil, 20])
        #expect(book.enter(limited(2)).map(\.bytesPerSecond) == [10, nil, 20])
        book.adopt([BudgetShare(name: "fleet", bytesPerSecond: 30)])
        #expect(running.map(\.bytesPerSecond) == [nil, nil, 30])
        book.leave(limited(1))
        #expect(book.enter(limited(3)).last?.bytesPerSecond == 30)
    }

    @Test func onlyWhatWasUsedUnderASharesNameIsTold() {
        let book = BudgetBook(bytesPerSecond: 1_000)
        let budgets = book.enter(limited(1))
        for budget in budgets { budget.take(5) }
        #expect(book.takeTraffic() == [])
        book.adopt([BudgetShare(name: "group:g", bytesPerSecond: 10), BudgetShare(name: "fleet", bytesPerSecond: 20)])
        for budget in budgets { budget.take(6) }
        book.leave(limited(1))
        #expect(
            book.takeTraffic().sorted { $0.budget < $1.budget } == [
                Traffic(budget: "fleet", bytes: 6, isShort: false),
                Traffic(budget: "group:g", bytes: 6, isShort: false),
            ]
        )
        #expect(book.takeTraffic() == [])
    }

    /// On a shared connection, a stream that waits for its budget would hold up streams that have none.
    @Test func fetchUnderABudgetHasAConnectionOfItsOwn() async throws {
        try await withBench(.h2) { bench, origin in
            origin.serve("/f", ScriptedOrigin.File(.seeded(seed: 3, size: 1_000)))
            var document = LeaseDocument.first(origin.url("/f"))
            document.group = "g"
            #expect(await bench.run(document).finished?.size == 1_000)
            bench.context.budgets.adopt([BudgetShare(name: "group:g", bytesPerSecond: 1 << 30)])
            document.task = TaskID(2)
            document.path = "out/other.bin"
            #expect(await bench.run(document).finished?.size == 1_000)
            #expect(origin.requests.map(\.version) == [.http2, .http1])
        }
    }

    @Test func fetchKeepsToTheSharesOfItsLeaseAndCountsItsBody() async throws {
        try await withBench(configure: { $0.bytesPerSecond = 1 << 30 }) { bench, origin in
            let file = ScriptedOrigin.File(.seeded(seed: 3, size: 300_000))
            origin.serve("/f", file)
            bench.context.budgets.adopt([
                BudgetShare(name: "group:g", bytesPerSecond: 0), BudgetShare(name: "fleet", bytesPerSecond: 1 << 30),
            ])
            var document = LeaseDocument.first(origin.url("/f"))
            document.group = "g"
            async let running = bench.run(document)
            try await origin.waitForRequest { $0.path == "/f" }
            // No byte comes through while the share is 0.
            #expect(bench.context.takeReceived() == 0)
            bench.context.budgets.adopt([
                BudgetShare(name: "group:g", bytesPerSecond: 2_000_000),
                BudgetShare(name: "fleet", bytesPerSecond: 1 << 30),
            ])
            #expect(await running.finished?.size == 300_000)
            let traffic = bench.context.budgets.takeTraffic().sorted { $0.budget < $1.budget }
            // Only the strictest budget held the transfer up.
            #expect(
                traffic == [
                    Traffic(budget: "fleet", bytes: 300_000, isShort: false),
                    Traffic(budget: "group:g", bytes: 300_000, isShort: true),
                ])
            try #expect(bench.file("out/file.bin") == file.content.allBytes)
        }
    }
}
