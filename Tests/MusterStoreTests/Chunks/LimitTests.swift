import MusterCore
import MusterPostgres
import MusterStore
import Testing

/// Origins that refuse because of too many requests at once (range contract, rows 24 and 25).
@Suite struct LimitTests {
    /// Chunks so large that more than a negligible part of one can arrive.
    private static var largeChunks: Store.Policy {
        var policy = StoreFixture.smallPolicy
        policy.firstChunk = 1 << 20
        return policy
    }

    @Test func twoRefusalsOfOneBurstHalveTheAllowanceOnce() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Wanted.many(8))
            var worker = try await fixture.makeWorker()
            let leases = try await worker.claim(4)
            try await worker.refuse(leases[0], 429)
            #expect(try await fixture.allowance() == 8)
            try await worker.refuse(leases[1], 503)
            #expect(try await fixture.allowance() == 8)
            try await fixture.check()
            // The refusal of a lease that was granted afterwards halves again.
            try await worker.refuse(try #require(try await worker.claim().first), 429)
            #expect(try await fixture.allowance() == 4)
            #expect(try await fixture.tries() == 0)
            #expect(try await fixture.outcomes() == ["retry", "retry", "retry"])
            try await fixture.check()
        }
    }

    @Test func refusalCountsAsATryWhenNothingElseIsHeld() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("t")], isSealed: true)
            var worker = try await fixture.makeWorker()
            for _ in 0..<3 {
                try await worker.refuse(try #require(try await worker.claim().first), 429)
                try await fixture.check()
                try await fixture.passBackoffs()
            }
            let task = try await fixture.store.task("t", of: "g")
            #expect(task.state == .failed && task.failure?.kind == .httpStatus(429) && task.attempts == 3)
            // A single request can't be too many.
            #expect(try await fixture.allowance() == 16)
        }
    }

    @Test func refusalCountsAsATryWhenNothingIsLeftToHalve() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Wanted.many(3))
            var worker = try await fixture.makeWorker()
            let leases = try await worker.claim(2)
            try await fixture.learnLimit(1)
            try await worker.refuse(leases[0], 429)
            #expect(try await fixture.allowance() == 1)
            #expect(try await fixture.tries() == 1)
            try await fixture.check()
        }
    }

    @Test func allowanceIsNotHalvedBelowTheLanesThatAreServed() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Wanted.many(16, size: 100))
            var worker = try await fixture.makeWorker()
            let leases = try await worker.claim(14)
            for lease in leases[2...] { #expect(try await worker.progress(lease, to: 10)) }
            // Twelve lanes bring bytes.
            for lease in leases[..<2] { try await worker.refuse(lease, 503) }
            #expect(try await fixture.allowance() == 12)
            #expect(try await worker.claim().isEmpty)
            try await worker.finishAll([leases[2]])
            try await worker.refuse(try #require(try await worker.claim().first), 503)
            #expect(try await fixture.allowance() == 11)
            #expect(try await fixture.tries() == 0)
            try await fixture.check()
        }
    }

    @Test func refusalsTooRareForALimitDoNotHalveTheAllowance() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Wanted.many(60, size: 10))
            var worker = try await fixture.makeWorker()
            for _ in 0..<4 { try await worker.finishAll(try await worker.claim(8)) }
            let leases = try await worker.claim(8)
            // If one of eight lanes were too many, every eighth request would have been refused.
            try await worker.refuse(leases[0], 503)
            #expect(try await fixture.allowance() == 16)
            #expect(try await fixture.tries() == 1)
            try await worker.refuse(leases[1], 503)
            try await worker.refuse(leases[2], 503)
            #expect(try await fixture.allowance() == 8, "they are not rare any more")
            #expect(try await fixture.tries() == 2)
            try await fixture.check()
        }
    }

    /// An origin that serves many small files and limits by 403 refuses one request whenever its allowance has grown by one.
    @Test(arguments: [false, true]) func aRareRefusalFailsNoTask(isKnownLimit: Bool) async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Wanted.many(60, size: 10))
            var worker = try await fixture.makeWorker()
            for _ in 0..<4 { try await worker.finishAll(try await worker.claim(8)) }
            let lease = try #require(try await worker.claim(8).first)
            if isKnownLimit { try await fixture.set("origins", "limits_with", to: [Int32(403)]) }
            try await worker.refuse(lease, 403)
            #expect(try await fixture.store.task(lease.key, of: "g").state == .queued)
            // If the status is known to be a limit, it halves the allowance; otherwise it counts as a try of the file.
            #expect(try await fixture.allowance() == (isKnownLimit ? 8 : 16))
            #expect(try await fixture.tries() == (isKnownLimit ? 0 : 1))
            try await fixture.check()
        }
    }

    @Test func aFileRefusedAgainWhileOthersAreServedDoesNotHalveTheAllowance() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Wanted.many(8, size: 10))
            var worker = try await fixture.makeWorker()
            let leases = try await worker.claim(4)
            try await worker.refuse(leases[0], 503)
            #expect(try await fixture.allowance() == 8)
            #expect(try await fixture.tries() == 0)
            try await worker.finishAll([leases[1]])
            try await fixture.passBackoffs()
            let again = try #require(try await worker.claim(8).first { $0.path == leases[0].path })
            try await worker.refuse(again, 503)
            #expect(try await fixture.allowance() == 8)
            #expect(try await fixture.tries() == 1)
            try await fixture.check()
        }
    }

    @Test func retryAfterIsForOneFileWhileOthersAreServed() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Wanted.many(30, size: 10))
            var worker = try await fixture.makeWorker()
            for _ in 0..<2 { try await worker.finishAll(try await worker.claim(8)) }
            try await worker.refuse(try await worker.claim(8)[0], 503, retryAfter: 100)
            let wait = try #require(try await fixture.waits().first)
            // Tried sooner than Retry-After says, since it may have been meant for a short limit.
            #expect(wait > 25 && wait < 31)
            #expect(try await fixture.origins().allSatisfy { $0.rest == nil })
            #expect(try await !worker.claim(8).isEmpty)
            try await fixture.check()
        }
    }

    /// Other files of the origin that redirects are served by itself.
    @Test func retryAfterOfAnOriginBehindARedirectIsForOneFile() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Wanted.many(9, size: 10))
            var worker = try await fixture.makeWorker()
            let lease = try #require(try await worker.claim().first)
            try await worker.refuse(lease, 503, retryAfter: 100, isElsewhere: true)
            #expect(try await fixture.origins().allSatisfy { $0.rest == nil })
            let others = try await worker.claim(8)
            #expect(!others.isEmpty && others.allSatisfy { $0.task != lease.task })
            #expect(try #require(try await fixture.waits().first) > 20)
            try await fixture.check()
        }
    }

    /// Other groups may be redirected to other origins (I19).
    @Test func limitOfAnOriginBehindARedirectLeavesLanesToOtherGroups() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Wanted.many(60, size: 10))
            var worker = try await fixture.makeWorker()
            for allowance in [8, 4, 2] as [Int32] {
                let leases = try await worker.claim(2)
                try await worker.refuse(leases[0], 503, isElsewhere: true)
                #expect(try await fixture.allowance() == allowance, "the group is alone")
                try await worker.release(leases[1])
            }
            try await fixture.makeGroup("h", Wanted.many(60, "h", size: 10))
            let leases = try await worker.claim(2)
            let refused = try #require(leases.first { $0.group == "g" })
            try await worker.refuse(refused, 503, isElsewhere: true)
            #expect(try await fixture.allowance() == 8)
            let own = try #require(try await worker.claim(2).first)
            try await worker.refuse(own, 503)
            #expect(try await fixture.allowance() == 4)
            try await fixture.check()
        }
    }

    @Test func anOriginWithALongRetryAfterIsProbedByOneLane() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Wanted.many(9, size: 10))
            var worker = try await fixture.makeWorker()
            try await worker.refuse(try #require(try await worker.claim().first), 503, retryAfter: 3_600)
            #expect(try await worker.claim(8).isEmpty)
            try await fixture.passProbePause()
            let lease = try #require(try await worker.claim(8).first)
            #expect(try await worker.claim(8).isEmpty, "one at a time")
            try await worker.finishAll([lease])
            #expect(try await fixture.store.foldOriginRates() == 1)
            #expect(try await worker.claim(8).count == 7)
            // An origin that an operator has paused is not probed.
            let later = Timestamp(microseconds: try await fixture.store.now().microseconds + 3_600_000_000)
            let paused = try await fixture.store.setOrigin("http://a.test:80", pausedUntil: .set(later))
            #expect(paused.pausedUntil == later)
            #expect(try await fixture.origins()[0].tryAt == nil)
            try await fixture.check()
        }
    }

    @Test(arguments: [403, 404]) func doubtfulRefusalIsASignOnlyWhileOthersAreAtWork(status: Int) async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("t"), Wanted("other")])
            var worker = try await fixture.makeWorker()
            let leases = try await worker.claim(2)
            let other = leases[1]
            try await worker.learn(leases[0], size: 100)
            // The URL worked before: the first refusal might mean that it has expired.
            try await worker.refuse(leases[0], 403)
            #expect(try await fixture.allowance() == 16)
            let again = try #require(try await worker.claim().first)
            try await worker.refuse(again, status)
            #expect(try await fixture.allowance() == 8)
            #expect(try await fixture.tries() == 0)
            #expect(try await fixture.sources().allSatisfy { !$0.dead })
            try await fixture.check()
            // A late refusal of the same burst is still part of it; a later refusal, with no other lease active, is not.
            try await worker.learn(other, size: 100)
            try await worker.refuse(other, 403)
            try await worker.refuse(try #require(try await worker.claim().first { $0.path == "other" }), status)
            try await fixture.check()
            #expect(try await fixture.allowance() == 8)
            // The lanes that the origin preferred may just have ended: a URL that worked before is tried again, and that counts.
            var task = try await fixture.store.task("other", of: "g")
            #expect(task.state == .queued && task.attempts == 1)
            _ = try await fixture.store.apply(.pause, to: "g", keys: ["t"])
            for _ in 2...3 {
                #expect(task.state == .queued)
                try await fixture.passBackoffs()
                try await worker.refuse(try #require(try await worker.claim().first { $0.path == "other" }), 404)
                task = try await fixture.store.task("other", of: "g")
            }
            #expect(task.state == .failed && task.attempts == 3)
            try await fixture.check()
        }
    }

    /// Bytes in flight when an origin resets a connection are no sign that it was served: a limit may be enforced in the middle of a body.
    @Test func resetIsASignOnlyWhereHardlyAnythingCame() async throws {
        try await StoreFixture.run(policy: Self.largeChunks) { fixture in
            try await fixture.makeGroup("g", Wanted.many(4, size: 200_000))
            var worker = try await fixture.makeWorker()
            let leases = try await worker.claim(4)
            try await worker.fail(leases[0], .network, at: 65_536)
            #expect(try await fixture.allowance() == 16)
            try await worker.fail(leases[1], .network, at: 65_535)
            #expect(try await fixture.allowance() == 8)
            #expect(try await fixture.tries() == 1, "the first lease's try")
            try await fixture.check()
        }
    }

    /// Bodies that are cut together: the bytes that arrived of each are no sign that its lane was served.
    @Test func lanesWhoseBodiesWereCutTogetherAreNotServed() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Wanted.many(16, size: 100_000))
            var worker = try await fixture.makeWorker()
            let leases = try await worker.claim(14)
            for lease in leases[..<2] { #expect(try await worker.progress(lease, to: 10)) }
            try await fixture.store.report(
                failed: leases[2...].map { lease in
                    LeaseReport.Failed(
                        progress: .init(
                            session: worker.session, lease: lease.name, durable: DurablePrefix(offset: 100, crc: 7)),
                        kind: .network, detail: "reset, after 100 bytes", source: 0, status: 206, random: 0.5)
                })
            #expect(try await fixture.allowance() == 8)
            #expect(try await fixture.tries() == 0)
            try await fixture.check()
        }
    }

    /// A file whose body always breaks off at one byte is given up, even while others are active: it is not taken for a limit for ever.
    @Test func aBodyThatAlwaysBreaksOffIsGivenUp() async throws {
        try await StoreFixture.run(policy: Self.largeChunks) { fixture in
            try await fixture.makeGroup("g", Wanted.many(2, size: 100_000))
            var worker = try await fixture.makeWorker()
            let leases = try await worker.claim(2)
            #expect(try await worker.progress(leases[0], to: 70_000))
            var lease = leases[1]
            var tries = 1
            while true {
                try await worker.fail(lease, .network, status: 206, detail: "reset, after 0 bytes")
                try await fixture.check()
                guard try await fixture.store.task(leases[1].key, of: "g").state == .queued else { break }
                try await fixture.passBackoffs()
                try await fixture.set(.learning, ago: .seconds(10))
                lease = try #require(try await worker.claim(1).first)
                tries += 1
            }
            #expect(tries <= 16, "\(tries)")
        }
    }

    @Test func limitDoesNotMoveATaskToAnotherSource() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("t", origins: ["a", "b"]), Wanted("other")])
            var worker = try await fixture.makeWorker()
            let leases = try await worker.claim(2)
            try await worker.learn(leases[0], size: 100, etag: "W/\"weak\"")
            var lease = leases[0]
            for round in 1...3 {
                try await worker.refuse(lease, 429, at: 30)
                try await fixture.check()
                try await fixture.passBackoffs()
                lease = try #require(try await worker.claim().first)
                #expect(lease.source == 0 && lease.version == 1 && lease.resume.offset == 30, "round \(round)")
            }
            #expect(try await fixture.allowance() == 2)
        }
    }

    @Test func configuredCapIsHalved() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Wanted.many(4))
            try await fixture.capOrigins(at: 6)
            var worker = try await fixture.makeWorker()
            let leases = try await worker.claim(4)
            try await worker.refuse(leases[0], 429)
            #expect(try await fixture.allowance() == 3)
            // The allowance never grows beyond the cap.
            try await fixture.set(.learning, ago: .seconds(86_400))
            #expect(try await fixture.allowance() == 6)
        }
    }

    @Test func backoffFollowsTheCoordinatorsPolicy() async throws {
        var policy = StoreFixture.smallPolicy
        policy.backoffBase = .seconds(1_000)
        policy.backoffMaximum = .seconds(1_500)
        try await StoreFixture.run(policy: policy) { fixture in
            try await fixture.makeGroup("g", [Wanted("t")])
            var worker = try await fixture.makeWorker()
            for expected in [500.0, 750.0] {
                let lease = try #require(try await worker.claim().first)
                try await worker.fail(lease, .timeout, random: 0.5)
                let wait = try #require(try await fixture.waits().first)
                #expect(wait > expected - 200 && wait <= expected)
                try await fixture.passBackoffs()
            }
        }
    }
}
