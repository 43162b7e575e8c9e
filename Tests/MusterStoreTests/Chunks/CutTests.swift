import MusterCore
import MusterPostgres
import Testing

@testable import MusterStore

/// Connections that always end before an answer, or always within its body (range contract, row 26).
@Suite struct CutTests {
    /// How a connection ends.
    enum Cut: CaseIterable {
        /// Before an answer.
        case unanswered
        /// After the same answer each time, before the first byte of the content.
        case atOnce
        /// After hardly any content, and after the same amount each time.
        case soon
        /// After hardly any content, and after a varying amount.
        case soonHereAndThere
        /// Within a plain GET, at the same byte each time.
        case whole
        /// Within a plain GET, at another byte each time.
        case wholeElsewhere
        /// Within a plain GET that can be resumed, each time at another byte of the part already fetched.
        case wholeWithin
        /// Within a plain GET that can't be resumed; every other time before the first byte of the content.
        case sometimesAtOnce
    }

    private static var policy: Store.Policy {
        var policy = StoreFixture.smallPolicy
        (policy.attempts, policy.unreachedAttempts) = (8, 3)
        return policy
    }

    private func cut(_ worker: inout TestWorker, _ how: Cut, try number: Int64) async throws {
        let lease = try #require(try await worker.claimWork().first)
        switch how {
        case .unanswered: try await worker.fail(lease, .network, isUnanswered: true)
        case .atOnce: try await worker.fail(lease, .network, status: 200)
        case .soon, .soonHereAndThere:
            let more = how == .soon ? 3 : number % 3
            try await worker.fail(lease, .network, at: lease.resume.offset + more, status: 206)
        case .whole, .wholeElsewhere, .wholeWithin:
            try await worker.learn(lease, size: 250, isSplittable: false)
            let elsewhere = how == .wholeElsewhere ? number : 0
            let within = how == .wholeWithin ? number : 150 + elsewhere
            try await worker.fail(
                lease, .network, at: 150 + elsewhere, status: 200, detail: "cut after \(within) bytes")
        case .sometimesAtOnce:
            try await worker.learn(lease, size: 250, isSplittable: false, etag: nil)
            let end = number % 2 == 1 ? 0 : 150 + number
            try await worker.fail(lease, .network, at: end, status: 200, detail: "cut after \(end) bytes")
        }
    }

    /// A failure that repeats to the byte does not get eight tries.
    @Test(arguments: Cut.allCases) func fileThatIsAlwaysCutAlikeIsGivenUpAfterTenSeconds(how: Cut) async throws {
        try await StoreFixture.run(policy: Self.policy) { fixture in
            try await fixture.makeGroup("g", [Wanted("t")])
            var worker = try await fixture.makeWorker()
            var tries = 0
            while try await fixture.store.task("t", of: "g").state != .failed {
                tries += 1
                try await cut(&worker, how, try: Int64(tries))
                try await fixture.check()
                try await fixture.passBackoffs()
            }
            // The first try is twelve seconds old by the fourth; a plain GET has one more try for each rung above it.
            let isAlike = ![.soonHereAndThere, .wholeElsewhere, .wholeWithin, .sometimesAtOnce].contains(how)
            #expect(isAlike ? (4...5).contains(tries) : tries >= 8, "\(tries)")
        }
    }

    /// An unreliable line sometimes cuts soon: that is no sign of too many connections.
    @Test(arguments: [false, true]) func earlyCutIsNoLimitIfOtherBodiesAreCutLate(isCutLate: Bool) async throws {
        var policy = Self.policy
        policy.firstChunk = 1 << 20
        try await StoreFixture.run(policy: policy) { fixture in
            try await fixture.makeGroup("g", Wanted.many(8, size: 200_000))
            var worker = try await fixture.makeWorker()
            let leases = try await worker.claim(8)
            if isCutLate { try await worker.fail(leases[0], .network, at: 70_000, status: 206) }
            try await worker.fail(leases[1], .network, at: 5_000, status: 206)
            #expect(try await (fixture.origins()[0].learned != nil) == !isCutLate)
            try await fixture.check()
        }
    }

    /// Small files bring no bytes that are reported before their end, so that lanes don't show what they were served: a file that always breaks off
    /// took all lanes but one from the other files of its origin (I19).
    @Test(arguments: [(0, 4), (6, 6), (9, 9), (99, 16)] as [(Int32, Int32)])
    func allowanceIsNotBelowWhatAWorkerSawTheOriginServeAtOnce(served: Int32, allowance: Int32) async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Wanted.many(4, size: 100_000))
            var worker = try await fixture.makeWorker()
            let leases = try await worker.claim(4)
            try await worker.fail(leases[0], .network, status: 206)
            #expect(try await fixture.allowance() == 8)
            try await fixture.passBackoffs()
            let again = try #require(try await worker.claim(1).first)
            try await worker.fail(again, .network, status: 206, servedAtOnce: served)
            // What was taken is given back, up to the cap.
            #expect(try await fixture.allowance() == allowance)
            try await fixture.check()
        }
    }

    /// A restarting server cuts all connections in the meantime, each time in the same way.
    @Test(arguments: Cut.allCases) func cutsWithinAMomentFailNoTask(how: Cut) async throws {
        try await StoreFixture.run(policy: Self.policy) { fixture in
            try await fixture.makeGroup("g", [Wanted("t")])
            var worker = try await fixture.makeWorker()
            for number in 1...7 as ClosedRange<Int64> {
                try await cut(&worker, how, try: number)
                try await fixture.check()
                try await fixture.passChunkWaits()
            }
            #expect(try await fixture.store.task("t", of: "g").state == .queued)
        }
    }

    /// A gateway without its server: waiting tasks must not sleep on when the server is back.
    @Test(arguments: [(502, true), (503, true), (429, true), (408, false)])
    func waitingTaskIsTriedWhenItsOriginServesAfterABreak(status: Int32, isTried: Bool) async throws {
        var policy = Self.policy
        policy.backoffBase = .seconds(1_000)
        try await StoreFixture.run(policy: policy) { fixture in
            try await fixture.makeGroup("g", Wanted.many(3))
            var worker = try await fixture.makeWorker()
            let leases = try await worker.claim(3)
            try await worker.fail(leases[0], .httpStatus(Int(status)), status: status)
            for seconds in [0, 5] {
                try await fixture.age(.originBytes, by: .seconds(seconds))
                #expect(try await fixture.store.promoteDueChunks() == 0)
                try await worker.finishAll([leases[seconds == 0 ? 1 : 2]])
                #expect(try await fixture.store.foldOriginRates() == 1)
                #expect(try await fixture.store.promoteDueChunks() == (seconds == 5 && isTried ? 1 : 0))
            }
        }
    }

    /// Eight tries may by chance be over within half a minute, while a gateway waits longer for its server.
    @Test(arguments: [(502, 20, true), (502, 70, false), (404, 20, false), (500, 1, false)])
    func outageReportedByAGatewayFailsNoTaskWithinAMinute(status: Int32, seconds: Int, isTried: Bool) async throws {
        try await StoreFixture.run(policy: Self.policy) { fixture in
            try await fixture.makeGroup("g", Wanted.many(2))
            var worker = try await fixture.makeWorker()
            let leases = try await worker.claim(2)
            try await worker.finishAll([leases[0]])
            _ = try await fixture.store.foldOriginRates()
            try await fixture.age(.originBytes, by: .seconds(seconds))
            var lease = leases[1]
            for number in 1...8 {
                try await worker.fail(lease, status == 404 ? .notFound : .httpStatus(Int(status)), status: status)
                if number == 1 {
                    try await fixture.age(.attempt, by: .seconds(seconds))
                }
                try await fixture.passChunkWaits()
                guard number < 8, let next = try await worker.claimWork().first else { break }
                lease = next
            }
            #expect(try await fixture.store.task(leases[1].key, of: "g").state == (isTried ? .queued : .failed))
        }
    }

    /// If the bodies of one file alone end at once, the file is given up; if other files bring nothing either, it is an outage.
    @Test(
        arguments: [(2, 20, 0, true), (2, 70, 0, false), (1, 20, 0, false), (2, 20, 2, true)]
            as [(Int, Int, Int64, Bool)])
    func bodiesOfSeveralFilesThatEndAtOnceAreAnOutageForAMinute(
        count: Int, seconds: Int, bytes: Int64, isTried: Bool
    ) async throws {
        try await StoreFixture.run(policy: Self.policy) { fixture in
            try await fixture.makeGroup("g", Wanted.many(1 + count))
            var worker = try await fixture.makeWorker()
            var leases = try await worker.claim(Int32(1 + count))
            try await worker.finishAll([leases.removeFirst()])
            _ = try await fixture.store.foldOriginRates()
            try await fixture.age(.originBytes, by: .seconds(seconds))
            // Refusals that may mean too many requests at once don't count at first.
            for _ in 1...30 {
                for lease in leases {
                    try await worker.fail(lease, .network, at: lease.resume.offset + bytes, status: 206)
                }
                try await fixture.check()
                try await fixture.set(.attempt, ago: .seconds(seconds))
                try await fixture.restOrigins(for: nil)
                try await fixture.passChunkWaits()
                leases = try await worker.claim(Int32(count))
            }
            #expect(try await fixture.store.group("g").tasks[.failed] == (isTried ? 0 : Int64(count)))
        }
    }

    /// A new version reaches the nodes of an origin one after the other: many changes within a second are no reason to give the file up.
    @Test func contentThatChangesQuicklyIsWaitedForFromTheFourthChangeOn() async throws {
        var policy = Self.policy
        policy.contentVersions = 8
        try await StoreFixture.run(policy: policy) { fixture in
            try await fixture.makeGroup("g", [Wanted("t")], isSealed: true)
            var worker = try await fixture.makeWorker()
            for version in 1...8 as ClosedRange<Int32> {
                let wait = try await fixture.waits().max() ?? 0
                #expect((wait > 0) == (version > 4))
                if version == 8 { #expect(wait > 4) }
                try await fixture.passBackoffs()
                let lease = try #require(try await worker.claimWork().first)
                #expect(lease.version == version && lease.rung == (version < 4 ? .chunks : .whole))
                try await worker.fail(lease, .changed)
                try await fixture.check()
            }
            #expect(try await fixture.store.task("t", of: "g").state == .failed)
        }
    }

    /// `get` of a list at a port without a listener (`product.md`: within 10 s).
    @Test(arguments: [1, 9]) func filesAreTriedOnceWhileAnOriginRefusesEverythingForLong(seconds: Int) async throws {
        try await StoreFixture.run(policy: Self.policy) { fixture in
            try await fixture.makeGroup("g", Wanted.many(8))
            var worker = try await fixture.makeWorker()
            let leases = try await worker.claim(8)
            try await worker.fail(leases[0], .network, isUnreached: true)
            // In the first two seconds the refusals may still be a limit.
            try await fixture.age(.doubt, by: .seconds(seconds))
            try await fixture.age(.originBytes, by: .seconds(10))
            for lease in leases[1...] { try await worker.fail(lease, .network, isUnreached: true) }
            try await fixture.check()
            #expect(try await fixture.store.group("g").tasks[.failed] == (seconds == 9 ? 7 : 0))
        }
    }

    /// An origin that has served lately and now answers no request is out: no file is given up for that within two minutes.
    @Test func originThatStopsAnsweringAllRequestsIsOut() async throws {
        try await StoreFixture.run(policy: Self.policy) { fixture in
            try await fixture.makeGroup("g", [Wanted("served"), Wanted("t")])
            var worker = try await fixture.makeWorker()
            try await worker.finishAll([try #require(try await worker.claim().first)])
            #expect(try await fixture.store.foldOriginRates() == 1)
            for number in 1...9 as ClosedRange<Int64> {
                try await cut(&worker, .unanswered, try: number)
                try await fixture.check()
                try await fixture.passBackoffs()
            }
            #expect(try await fixture.store.task("t", of: "g").state == .queued)
            try await fixture.age(.originBytes, by: .seconds(120))
            try await cut(&worker, .unanswered, try: 10)
            #expect(try await fixture.store.task("t", of: "g").state == .failed)
        }
    }
}
