import MusterAPI
import MusterCore
import Testing

@testable import MusterWorker

/// The transfers that a worker begins beyond its slots (I19, adr/0051).
@Suite struct WorkerMachineSpareTests {
    /// Bytes of a lease come: the more, the later it is.
    private static func bring(_ harness: inout MachineHarness, _ number: Int64) {
        let offset = harness.now / 100_000 - 10_000_000 + 1
        harness.feed(.job(lease(number).name, .progress(DurablePrefix(offset: offset, crc: 1), nil)))
    }

    /// Lets time pass while bytes of leases come every two seconds.
    private static func passBringing(
        _ harness: inout MachineHarness, _ numbers: ClosedRange<Int64>, seconds: Int
    ) -> [MachineEffect] {
        var effects: [MachineEffect] = []
        for _ in 0..<seconds / 2 {
            effects += harness.passAnswering(.seconds(2))
            for number in numbers { bring(&harness, number) }
        }
        return effects
    }

    /// Another group may wait for a slot (I19).
    @Test func oneMoreTransferBeginsWhenAllSlotsWereTakenLongAgo() {
        var harness = MachineHarness(slots: 2)
        let first = harness.open()
        harness.answer(first, [lease(1), lease(2)])
        for number in 1...2 as ClosedRange<Int64> { Self.bring(&harness, number) }
        #expect(harness.passAnswering(.milliseconds(4_900)).syncs.allSatisfy { $0.spare == nil })
        harness.passAnswering(.seconds(10))
        let sync = harness.pass(.seconds(8)).syncs.last
        #expect(sync?.spare == true && sync?.room == 0)
        #expect(harness.answer(sync, [lease(3)]).started == [lease(3).name])
        for number in 1...3 as ClosedRange<Int64> { Self.bring(&harness, number) }
        #expect(harness.machine.room == 0)
        #expect(Self.passBringing(&harness, 1...3, seconds: 20).syncs.allSatisfy { $0.spare == nil }, "one alone")
        #expect(harness.end(lease(3), done()).syncs.last?.spare == true, "the next one may follow at once")
        harness.end(lease(1), done())
        #expect(harness.machine.room == 1)
    }

    /// Silent origins of a list hold up none of the others: a transfer that waits for an answer takes nothing but a connection (I19).
    @Test func forEachTransferThatWaitsForAnAnswerOneMoreBegins() {
        var harness = MachineHarness(slots: 2)
        harness.answer(harness.open(), [lease(1), lease(2)])
        harness.passAnswering(.seconds(10))
        var sync = harness.pass(.seconds(8)).syncs.last
        for number in 3...5 as ClosedRange<Int64> {
            #expect(sync?.spare == true, "\(number)")
            sync = harness.answer(sync, [lease(number)]).syncs.last ?? harness.pass(.seconds(2)).syncs.last
        }
        #expect(sync != nil && sync?.spare == nil, "one beyond the slots, and two for those that wait")
        harness.passAnswering(.seconds(10))
        sync = harness.pass(.seconds(8)).syncs.last
        #expect(sync?.spare == true, "by now, five wait")
        for number in 1...5 as ClosedRange<Int64> { Self.bring(&harness, number) }
        sync = harness.pass(.seconds(8)).syncs.last
        #expect(sync != nil && sync?.spare == nil, "none of them waits any more")
    }

    /// Each of several groups at slow origins gets one, and a further group still finds one (I19).
    @Test func halfAsManyTransfersAsSlotsBeginBesideThoseThatLastLong() {
        var harness = MachineHarness(slots: 4)
        harness.answer(harness.open(), (1...4 as ClosedRange<Int64>).map { lease($0) })
        for number in 1...4 as ClosedRange<Int64> { Self.bring(&harness, number) }
        harness.passAnswering(.seconds(10))
        var sync = harness.pass(.seconds(8)).syncs.last
        for number in 5...6 as ClosedRange<Int64> {
            #expect(sync?.spare == true && sync?.room == 0)
            let news = harness.answer(sync, [lease(number)])
            #expect(news.started == [lease(number).name])
            sync = news.syncs.last ?? harness.pass(.seconds(8)).syncs.last
        }
        for number in 1...6 as ClosedRange<Int64> { Self.bring(&harness, number) }
        sync = harness.passAnswering(.seconds(2)).syncs.last
        #expect(sync != nil && sync?.spare == nil, "two at most")
        sync = harness.end(lease(6), done()).syncs.last
        #expect(sync?.spare == true && sync?.room == 0)
        // A transfer beyond the slots takes no slot from a more urgent group, however long it lasts.
        harness.end(lease(1), done())
        #expect(harness.machine.room == 1)
        harness.end(lease(5), done())
        #expect(harness.machine.room == 1)
    }

    /// An origin that sends a byte now and then holds up no more than one that sends nothing (I19).
    @Test func transferThatBringsHardlyAnythingCountsLikeOneThatWaits() {
        var harness = MachineHarness(slots: 2)
        harness.answer(harness.open(), [lease(1), lease(2)])
        _ = Self.passBringing(&harness, 1...2, seconds: 20)
        harness.answer(harness.pass(.seconds(8)).syncs.last, [lease(3)])
        for number in 1...3 as ClosedRange<Int64> { Self.bring(&harness, number) }
        #expect(Self.passBringing(&harness, 1...3, seconds: 10).syncs.allSatisfy { $0.spare == nil }, "one alone")
        let offset = harness.now / 100_000
        for second in 1...12 as ClosedRange<Int64> {
            harness.passAnswering(.seconds(1))
            for number in 1...2 as ClosedRange<Int64> {
                let drop = DurablePrefix(offset: offset + second, crc: 1)
                harness.feed(.job(lease(number).name, .progress(drop, nil)))
            }
            Self.bring(&harness, 3)
        }
        #expect(harness.pass(.seconds(8)).syncs.last?.spare == true)
    }
}
