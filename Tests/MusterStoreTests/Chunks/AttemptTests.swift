import MusterCore
import MusterPostgres
import MusterStore
import Testing

/// The record of attempts, and how a failure is reported.
@Suite struct AttemptTests {
    @Test func failureStatesStatusSourceAndRequestID() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("t", origins: ["a", "b"])], isSealed: true)
            var worker = try await fixture.makeWorker()
            _ = try await worker.refuse(try #require(try await worker.claim().first), 500)
            let last = try #require(try await worker.claim().first)
            try await worker.refuse(last, 410)
            try await worker.refuse(try #require(try await worker.claim().first), 404)
            let failure = try #require(try await fixture.store.task("t", of: "g").failure)
            #expect(failure.kind == .notFound && failure.status == 404 && failure.source == "http://a.test/t")
            #expect(failure.requestID?.hasPrefix("request-") == true && failure.detail == "status 404")
            #expect(try await fixture.told("task.failed", "failure", "kind") == ["notFound"])
            #expect(try await fixture.told("task.failed", "failure", "status") == ["404"])
            #expect(try await fixture.told("task.failed", "failure", "source") == ["http://a.test/t"])
            let noted = try await fixture.attempts()
            #expect(noted.map(\.kind) == ["httpStatus(500)", "notFound", "notFound"])
            #expect(noted.map(\.source) == [0, 1, 0] && noted.map(\.status) == [500, 410, 404])
            #expect(noted.map(\.outcome) == ["nextSource", "nextSource", "failed"])
            #expect(noted.allSatisfy { $0.worker == "worker" && $0.address == "192.0.2.1" && $0.byte == 0 })
        }
    }

    @Test func failureWithoutAnAnswerClearsTheEarlierAnswer() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("t")])
            var worker = try await fixture.makeWorker()
            try await worker.refuse(try #require(try await worker.claim().first), 500)
            try await fixture.run("SELECT fail_task(id, 'poison', 'too many died')::text FROM tasks")
            let failure = try #require(try await fixture.store.task("t", of: "g").failure)
            #expect(failure.kind == .poison && failure.status == nil && failure.source == nil)
            try await fixture.check()
        }
    }

    @Test func successClearsTheFailure() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("t")])
            var worker = try await fixture.makeWorker()
            try await worker.refuse(try #require(try await worker.claim().first), 500)
            try await worker.finishEverything()
            let task = try await fixture.tasks()[0]
            #expect(task.failureKind == nil && task.failureStatus == nil)
            #expect(task.failureSource == nil && task.failureRequest == nil)
        }
    }

    @Test func newestAttemptsAreKept() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Wanted.many(2))
            for n in 1...60 {
                try await fixture.run(
                    """
                    SELECT note_attempt(id, 0, 0, 'retry', jsonb_populate_record(
                        NULL::failure, jsonb_build_object('session_id', 0, 'kind', 'network', 'detail', \("attempt \(n)")::text)))::text
                    FROM tasks
                    """)
            }
            let noted = try await fixture.attempts()
            let counts = Dictionary(grouping: noted, by: \.taskId).values.map { Int32($0.count) }
            #expect(counts == [Limits.attemptsKept, Limits.attemptsKept])
            #expect(noted.first?.detail == "attempt \(60 - Limits.attemptsKept + 1)")
            // Attempts are deleted with their task.
            try await fixture.store.remove("g", keys: nil, deletingFiles: false)
            #expect(try await fixture.count(of: "attempts") == 0)
        }
    }

    @Test func storageTroubleIsNotedAndCountsForNothing() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("t")])
            var worker = try await fixture.makeWorker()
            try await worker.fail(try #require(try await worker.claim().first), .storageFull)
            #expect(try await fixture.outcomes() == ["returned"])
            #expect(try await fixture.store.task("t", of: "g").failure == nil)
            #expect(try await fixture.sources()[0].failures == 0)
        }
    }

    /// More tries than any task has here: a task that is still tried after them is never given up.
    private static let manyTries = 200

    /// Counts how often a worker fails a task's lease until the task has failed for good.
    private func failures(
        _ fixture: StoreFixture, of key: String, _ worker: inout TestWorker, _ kind: FailureKind,
        status: Int32? = nil, isUnreached: Bool = false
    ) async throws -> Int {
        var count = 0
        while try await fixture.store.task(key, of: "g").state != .failed {
            try #require(count < Self.manyTries, "\(key) is never given up")
            let lease = try #require(try await worker.claim().first)
            try await worker.fail(lease, kind, status: status, isUnreached: isUnreached)
            try await fixture.passBackoffs()
            count += 1
        }
        try await fixture.check()
        return count
    }

    private static var patientPolicy: Store.Policy {
        var policy = StoreFixture.smallPolicy
        (policy.attempts, policy.unreachedAttempts) = (8, 3)
        return policy
    }

    /// Refused connections and unknown names (`product.md`: 3 attempts of `get`).
    @Test func unreachableOriginIsGivenUpSooner() async throws {
        try await StoreFixture.run(policy: Self.patientPolicy) { fixture in
            try await fixture.makeGroup("g", [Wanted("near"), Wanted("far")])
            var worker = try await fixture.makeWorker()
            #expect(try await fixture.tasks().map(\.key) == ["near", "far"])
            _ = try await fixture.store.apply(.pause, to: "g", keys: ["far"])
            #expect(try await failures(fixture, of: "near", &worker, .network) == 8)
            _ = try await fixture.store.apply(.resume, to: "g", keys: ["far"])
            #expect(try await failures(fixture, of: "far", &worker, .network, isUnreached: true) == 3)
        }
    }

    /// Each try of a hanging link costs a minute, whatever else its origin serves; a directory without permission stays closed
    /// until the user opens it.
    @Test(arguments: [FailureKind.timeout, .noPermission])
    func linkThatHangsAndDirectoryThatIsClosedAreGivenUpSooner(kind: FailureKind) async throws {
        try await StoreFixture.run(policy: Self.patientPolicy) { fixture in
            try await fixture.makeGroup("g", [Wanted("served"), Wanted("t")])
            var worker = try await fixture.makeWorker()
            try await worker.finishAll([try #require(try await worker.claim().first)])
            #expect(try await fixture.store.foldOriginRates() == 1)
            #expect(try await failures(fixture, of: "t", &worker, kind) == 3)
        }
    }

    /// An origin may cut off every response.
    @Test(arguments: [(2_000, true), (1_000, false)])
    func restOfAChunkIsRequestedAtOnceIfEnoughOfItHasArrived(bytes: Int64, isAtOnce: Bool) async throws {
        var policy = Store.Policy()
        (policy.backoffBase, policy.backoffMaximum) = (.seconds(16_000), .seconds(16_000))
        try await StoreFixture.run(policy: policy) { fixture in
            try await fixture.makeGroup("g", [Wanted("t", size: 1 << 20)])
            var worker = try await fixture.makeWorker()
            let lease = try #require(try await worker.claim().first)
            try await worker.fail(lease, .network, at: bytes, random: 1)
            #expect(try await worker.claim().isEmpty != isAtOnce)
        }
    }

    /// An origin that has served lately and refuses connections has an outage: its name is not wrong.
    @Test func unreachableOriginThatHasServedLatelyGetsAllAttempts() async throws {
        try await StoreFixture.run(policy: Self.patientPolicy) { fixture in
            try await fixture.makeGroup("g", [Wanted("served"), Wanted("t")])
            var worker = try await fixture.makeWorker()
            try await worker.finishAll([try #require(try await worker.claim().first)])
            #expect(try await fixture.store.foldOriginRates() == 1)
            for _ in 1...9 {
                let lease = try #require(try await worker.claim().first)
                try await worker.fail(lease, .network, isUnreached: true)
                try await fixture.check()
                try await fixture.passBackoffs()
            }
            // It has served within the last two minutes: no try is the last one.
            var retry = try #require(try await fixture.store.task("t", of: "g").retry)
            #expect(retry.number == 8 && retry.limit == nil && (1...120).contains(retry.onForSeconds ?? 0))
            try await fixture.age(.originBytes, by: .seconds(120))
            retry = try #require(try await fixture.store.task("t", of: "g").retry)
            #expect(retry.number == 8 && retry.limit == 8 && retry.onForSeconds == nil)
            #expect(try await failures(fixture, of: "t", &worker, .network, isUnreached: true) == 1)
            // Bytes served long ago are no sign of an outage.
            try await fixture.age(.originBytes, by: .seconds(3_600))
            _ = try await fixture.store.apply(.retry, to: "g", keys: nil)
            #expect(try await failures(fixture, of: "t", &worker, .network, isUnreached: true) == 3)
        }
    }

    /// The origin has served another group without this proxy: the proxy's name may be wrong.
    @Test(arguments: [true, false])
    func proxyThatHasServedItsGroupNothingIsGivenUpSooner(hasServed: Bool) async throws {
        try await StoreFixture.run(policy: Self.patientPolicy) { fixture in
            try await fixture.makeGroup("before", [Wanted("served")])
            try await fixture.makeGroup("g", hasServed ? [Wanted("first"), Wanted("t")] : [Wanted("t")])
            var worker = try await fixture.makeWorker()
            for _ in 0..<(hasServed ? 2 : 1) {
                try await worker.finishAll([try #require(try await worker.claim().first)])
            }
            #expect(try await fixture.store.foldOriginRates() == 1)
            try await fixture.age(.originBytes, by: .seconds(180))
            let tries = try await failures(fixture, of: "t", &worker, .proxy, isUnreached: true)
            #expect(tries == (hasServed ? 8 : 3))
        }
    }

    /// A failure that may pass gets more tries than the limit, unless the limit is one or two.
    @Test(arguments: [1, 2]) func attemptLimitOfOneOrTwoHoldsEvenIfTheFailureMayPass(tries: Int32) async throws {
        var policy = Self.patientPolicy
        policy.attempts = tries
        try await StoreFixture.run(policy: policy) { fixture in
            try await fixture.makeGroup("g", [Wanted("served"), Wanted("t")])
            var worker = try await fixture.makeWorker()
            try await worker.finishAll([try #require(try await worker.claim().first)])
            #expect(try await fixture.store.foldOriginRates() == 1)
            #expect(try await failures(fixture, of: "t", &worker, .httpStatus(503), status: 503) == Int(tries))
        }
    }

    /// The target of a redirect may be away for a moment, as an origin may.
    @Test(arguments: [true, false])
    func redirectToAnUnknownHostIsTriedLikeAnOutageIfItsOriginHasServedLately(hasServed: Bool) async throws {
        try await StoreFixture.run(policy: Self.patientPolicy) { fixture in
            try await fixture.makeGroup("g", hasServed ? [Wanted("served"), Wanted("t")] : [Wanted("t")])
            var worker = try await fixture.makeWorker()
            if hasServed {
                try await worker.finishAll([try #require(try await worker.claim().first)])
                #expect(try await fixture.store.foldOriginRates() == 1)
                try await fixture.age(.originBytes, by: .seconds(180))
            }
            let tries = try await failures(fixture, of: "t", &worker, .dns, status: 302, isUnreached: true)
            #expect(tries == (hasServed ? 8 : 3))
        }
    }

    /// A rate limit of so many seconds refuses every try within them. A refusal that never passes is about the file itself, and no
    /// worker can tell the two apart.
    @Test(arguments: [429, 503, 403, 404]) func limitOfAnOriginThatHasServedLatelyIsTriedForLonger(
        status: Int
    ) async throws {
        try await StoreFixture.run(policy: Self.patientPolicy) { fixture in
            try await fixture.makeGroup("g", [Wanted("served"), Wanted("t")])
            var worker = try await fixture.makeWorker()
            try await worker.finishAll([try #require(try await worker.claim().first)])
            #expect(try await fixture.store.foldOriginRates() == 1)
            var tries: [Int] = []
            for age in [0, 180] {
                try await fixture.set(.originBytes, ago: .seconds(age))
                tries.append(0)
                while try await fixture.store.task("t", of: "g").state != .failed {
                    // A witness has shown once that it is a limit.
                    let isLimit = status < 429 && tries == [0] ? true : nil
                    try await worker.refuse(try #require(try await worker.claim().first), status, isLimit: isLimit)
                    try await fixture.passBackoffs()
                    tries[tries.count - 1] += 1
                }
                try await fixture.check()
                _ = try await fixture.store.apply(.retry, to: "g", keys: nil)
            }
            // A status that usually has another meaning no longer counts as a limit.
            #expect(tries == [33, status < 429 ? 1 : 8])
        }
    }

    /// The user waits for room (`get --on-full wait`).
    @Test func fileWithoutRoomIsNeverGivenUpWhereRoomIsWaitedFor() async throws {
        var policy = Self.patientPolicy
        policy.waitsForRoom = true
        try await StoreFixture.run(policy: policy) { fixture in
            try await fixture.makeGroup("g", [Wanted("huge", size: 900)])
            var worker = try await fixture.makeWorker()
            for _ in 1...12 {
                let lease = try #require(try await worker.claim().first)
                try await worker.fail(lease, .noSpace)
                try await fixture.check()
                try await fixture.passBackoffs()
            }
            let task = try await fixture.store.task("huge", of: "g")
            let retry = try #require(task.retry)
            #expect(task.state == .queued && retry.number == 13 && retry.limit == nil)
        }
    }

    @Test(
        arguments: [
            (.timeout, 3), (.dns, 3), (.network, nil), (.httpStatus(403), nil), (.notFound, nil),
            (.httpStatus(400), nil), (.noSpace, 8),
        ] as [(FailureKind, Int32?)])
    func shownAttemptLimitIsTheOneThatApplies(kind: FailureKind, limit: Int32?) async throws {
        try await StoreFixture.run(policy: Self.patientPolicy) { fixture in
            try await fixture.makeGroup("g", Wanted.many(2))
            var worker = try await fixture.makeWorker()
            // Another task is served meanwhile, so that a refusal may be a limit and is tried again.
            _ = try await worker.claim()
            try await worker.fail(
                try #require(try await worker.claim().first), kind,
                status: [.notFound: 404, .httpStatus(400): 400, .httpStatus(403): 403][kind],
                isUnreached: kind == .dns)
            let retry = try #require(try await fixture.store.tasksInTrouble(of: "g", limit: 1).first?.retry)
            #expect(retry.limit == limit)
        }
    }

    /// A rate limit may pass (`may_pass`): the last try is made again and again as long as the origin has served lately, and it is told for how long.
    @Test func endOfTheTriesIsToldWhereALimitMayPass() async throws {
        try await StoreFixture.run(policy: Self.patientPolicy) { fixture in
            try await fixture.makeGroup("g", [Wanted("served"), Wanted("t")])
            var worker = try await fixture.makeWorker()
            try await worker.finishAll([try #require(try await worker.claim().first)])
            #expect(try await fixture.store.foldOriginRates() == 1)
            for _ in 1...9 {
                try await worker.fail(try #require(try await worker.claim().first), .httpStatus(503), status: 503)
                try await fixture.check()
                try await fixture.passBackoffs()
            }
            func retry() async throws -> TaskRetry? { try await fixture.store.task("t", of: "g").retry }
            let last = try #require(try await retry())
            #expect(last.number == 8 && last.limit == 8)
            #expect((1...120).contains(last.onForSeconds ?? 0), "\(last)")
            try await fixture.age(.originBytes, by: .seconds(120))
            let over = try #require(try await retry())
            #expect(over.limit == 8 && over.onForSeconds == nil)
        }
    }

    /// The body may break off at the same byte each time; the task is given up then (`always_ends`).
    @Test(arguments: [(200, nil), (nil, 8)] as [(Int32?, Int32?)])
    func noAttemptLimitIsShownForABodyThatBreaksOff(status: Int32?, limit: Int32?) async throws {
        var policy = Self.patientPolicy
        policy.unreachedAttempts = policy.attempts
        try await StoreFixture.run(policy: policy) { fixture in
            try await fixture.makeGroup("g", [Wanted("t")])
            var worker = try await fixture.makeWorker()
            try await worker.fail(try #require(try await worker.claim().first), .network, status: status)
            #expect(try await fixture.store.task("t", of: "g").retry?.limit == limit)
        }
    }

    /// An origin that reports too many requests gets its budget halved, and the refused task waits for its turn.
    @Test func taskWhoseFailureDidNotCountStaysInTrouble() async throws {
        try await StoreFixture.run(policy: Self.patientPolicy) { fixture in
            try await fixture.makeGroup("g", [Wanted("served"), Wanted("refused")])
            var worker = try await fixture.makeWorker()
            let served = try #require(try await worker.claim().first)
            let refused = try #require(try await worker.claim().first)
            try await worker.fail(refused, .httpStatus(503))
            try await fixture.passBackoffs()
            let tasks = try await fixture.store.tasksInTrouble(of: "g", limit: 10)
            #expect(tasks.map(\.key) == ["refused"] && tasks.first?.retry != nil)
            try await worker.release(served)
        }
    }
}
