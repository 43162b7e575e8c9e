import MusterAPI
import MusterCore
import Testing

@testable import MusterWorker

/// How a worker takes part in a check (adr/0048).
struct WorkerMachineCheckTests {
    private func page(_ step: Int64, _ kind: CheckOrder.Kind = .files, epoch: Int64 = 7) -> CheckOrder {
        CheckOrder(sink: "default", epoch: epoch, step: step, kind: kind)
    }

    /// Answers a sync with a page, or with none.
    private func answer(_ harness: inout MachineHarness, _ sync: SyncRequest?, _ page: CheckOrder?) -> [MachineEffect] {
        let answer = SyncResponse(ttlMilliseconds: 30_000, check: page)
        return harness.feed(.syncAnswered(SessionID(1), sequence: sync?.sequence ?? -1, answer))
    }

    private func looks(_ effects: [MachineEffect]) -> [CheckOrder] {
        effects.compactMap { if case .look(let order) = $0 { order } else { nil } }
    }

    @Test func aPageIsLookedAtOnceAndReportedAtOnce() {
        var harness = MachineHarness()
        let first = harness.open()
        #expect(first?.check == nil)
        let effects = answer(&harness, first, page(1))
        #expect(looks(effects) == [page(1)])
        let poll = effects.syncs.last
        #expect(poll?.check?.isUnderWay == true && poll?.check?.name == page(1).name)
        #expect(looks(answer(&harness, poll, page(1, .goOn))) == [])
        var report = CheckReport(on: page(1))
        report.looked = 3
        let news = harness.feed(.checked(report)).syncs.last
        #expect(news?.check == report && news?.waitMilliseconds == 0)
        // The answer is lost: the next sync says it again.
        harness.fail(news)
        let again = harness.pass(.seconds(5)).syncs.last
        #expect(again?.check == report)
        #expect(looks(answer(&harness, again, page(2))) == [page(2)])
    }

    @Test func aPageIsGivenUpWhenNoAnswerNamesItAnyMore() {
        var harness = MachineHarness()
        let effects = answer(&harness, harness.open(), page(1))
        let stopped = answer(&harness, effects.syncs.last, nil)
        #expect(stopped.contains(.stopLooking))
        #expect(harness.feed(.checked(CheckReport(on: page(1)))).syncs.isEmpty)
        #expect(harness.passAnswering(.seconds(20)).syncs.allSatisfy { $0.check == nil })
    }

    @Test func anAnswerToASupersededSyncChangesNothing() {
        var harness = MachineHarness()
        let poll = answer(&harness, harness.open(), page(1)).syncs.last
        let news = harness.feed(.checked(CheckReport(on: page(1)))).syncs.last
        // The poll was sent before the page was looked at.
        #expect(looks(answer(&harness, poll, page(1, epoch: 6))) == [])
        #expect(looks(answer(&harness, news, page(2))) == [page(2)])
    }

    @Test func aPageThatCanNotBeLookedAtRests() {
        var harness = MachineHarness()
        let poll = answer(&harness, harness.open(), page(1)).syncs.last
        #expect(harness.feed(.checkFailed(page(1).name)).syncs.isEmpty)
        #expect(looks(answer(&harness, poll, page(1, .goOn))) == [])
        // After the pause a sync says nothing of it, and its answer gives it out again.
        let later = harness.passAnsweringChecks(.seconds(30), page(1))
        #expect(looks(later) == [page(1)])
    }

    @Test func aWorkerThatLeavesLooksAtNothing() {
        var harness = MachineHarness()
        let poll = answer(&harness, harness.open(), page(1)).syncs.last
        let effects = harness.feed(.drain)
        #expect(effects.contains(.stopLooking))
        #expect(looks(answer(&harness, poll, page(2))) == [])
    }
}

extension MachineHarness {
    /// Lets time pass while a coordinator answers every sync at once, as the database would: with `goOn` for the page that is under way,
    /// otherwise with the page.
    fileprivate mutating func passAnsweringChecks(_ span: Duration, _ page: CheckOrder) -> [MachineEffect] {
        let begin = effects.count
        let end = now + span.wholeNanoseconds
        while let deadline = machine.nextDeadline, deadline <= end {
            answerCheck(page)
            now = max(now, min(deadline, end))
            feed(.tick)
        }
        answerCheck(page)
        return Array(effects[begin...])
    }

    private mutating func answerCheck(_ page: CheckOrder) {
        guard let sync = effects.syncs.last else { return }
        var order = page
        if sync.check?.isUnderWay == true { order.kind = .goOn }
        let answer = SyncResponse(ttlMilliseconds: 30_000, check: order)
        feed(.syncAnswered(SessionID(1), sequence: sync.sequence, answer))
    }
}
