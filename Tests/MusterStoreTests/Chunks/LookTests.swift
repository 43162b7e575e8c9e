import MusterCore
import MusterPostgres
import MusterStore
import Testing

/// After which failures a lease tells its worker to look whether a plain GET is served, and what follows (`ladder.sql`, adr/0028).
@Suite struct LookTests {
    /// Returns a worker that has fetched the first of a file's three chunks.
    private static func begin(_ fixture: StoreFixture, origins: [String] = ["a"]) async throws -> TestWorker {
        try await fixture.makeGroup("g", [Wanted("t", origins: origins)], isSealed: true)
        var worker = try await fixture.makeWorker()
        let first = try #require(try await worker.claim().first)
        #expect(first.looks == (origins.count == 1 ? .refused : nil))
        try await worker.learn(first, size: 250)
        try await worker.done(first)
        return worker
    }

    private static func next(_ fixture: StoreFixture, _ worker: inout TestWorker) async throws -> GrantedLease {
        try await fixture.passBackoffs()
        try await fixture.check()
        return try #require(try await worker.claimWork().first)
    }

    @Test func aLookIsMadeEarlyIfLittleHasComeAndBeforeTheLastTryCounts() async throws {
        try await StoreFixture.run { fixture in
            var worker = try await Self.begin(fixture)
            var lease = try await Self.next(fixture, &worker)
            #expect(lease.start > 0 && lease.looks == .refused)
            try await worker.fail(lease, .httpStatus(500), status: 500, random: 0)
            lease = try await Self.next(fixture, &worker)
            #expect(lease.looks == .failed)
            // Ten bytes further there is more to give up, so the next look comes later.
            try await worker.fail(lease, .network, at: lease.start + 10, random: 0)
            var seen: [Look?] = []
            while try await fixture.store.task("t", of: "g").state != .failed {
                lease = try await Self.next(fixture, &worker)
                seen.append(lease.looks)
                try await worker.fail(lease, .httpStatus(500), at: lease.resume.offset, status: 500, random: 0)
            }
            #expect(seen.last == .failed && seen.dropLast().allSatisfy { $0 == .refused } && seen.count > 1)
        }
    }

    /// The third such failure drops the source.
    @Test func answersThatEndEarlyAtTheSameByteAreLookedAtBeforeTheyAreGivenUp() async throws {
        try await StoreFixture.run { fixture in
            var worker = try await Self.begin(fixture)
            var lease = try await Self.next(fixture, &worker)
            try await worker.progress(lease, to: lease.start + 10)
            for expected in [Look.refused, .ended, .failed] {
                #expect(lease.looks == expected)
                try await worker.fail(lease, .network, at: lease.start + 10, status: 206, random: 0)
                if expected != .failed { lease = try await Self.next(fixture, &worker) }
            }
        }
    }

    /// On a line that cuts everything, a look may once have seen a plain GET get far. The plain GET is resumed if its content has a strong validator.
    @Test(arguments: ["\"1\"", "W/\"1\"", nil] as [String?])
    func plainGETThatIsCutIsResumedIfItsContentHasAStrongValidator(etag: String?) async throws {
        try await StoreFixture.run { fixture in
            var worker = try await Self.begin(fixture)
            var lease = try await Self.next(fixture, &worker)
            try await worker.restart(lease, on: .whole)
            lease = try await Self.next(fixture, &worker)
            let isStrong = etag == "\"1\""
            for bytes in [1_000, 2_000] as [Int64] {
                #expect(lease.rung == .whole)
                try await worker.learn(lease, size: 2_500, isSplittable: false, etag: etag)
                try await worker.fail(lease, .network, at: bytes, status: 200, random: 0)
                lease = try await Self.next(fixture, &worker)
                #expect(lease.resume.offset == (isStrong ? bytes : 0))
            }
            let tries = try await fixture.leases().first { $0.kind == "fetch" }?.attempts
            #expect(tries == (isStrong ? 1 : 2), "usable progress resets the attempts")
            // The session is lost.
            _ = try await fixture.expire(worker.session)
            var other = try await fixture.makeWorker()
            #expect(try await Self.next(fixture, &other).resume.offset == (isStrong ? 2_000 : 0))
        }
    }

    /// Both mirrors serve the file, and refuse ranges above its beginning. Whichever mirror is left, it is asked by a plain GET
    /// before the task fails, even if its lease was granted while the other was still alive.
    @Test(arguments: [Int32(0), 1]) func theLastMirrorIsLookedAt(last: Int32) async throws {
        try await StoreFixture.run { fixture in
            var worker = try await Self.begin(fixture, origins: ["a", "b"])
            try await fixture.set("tasks", "mixes", to: true)
            let leases = try await worker.claim(2)
            #expect(Set(leases.map(\.source)) == [0, 1] && leases.allSatisfy { $0.looks == nil })
            let first = try #require(leases.first { $0.source != last })
            let second = try #require(leases.first { $0.source == last })
            try await worker.fail(first, .badRange, random: 0)
            try await worker.fail(second, .badRange, random: 0)
            let lease = try await Self.next(fixture, &worker)
            #expect(lease.source == last && lease.looks != nil)
            try await worker.fail(lease, .badRange, random: 0)
            #expect(try await fixture.store.task("t", of: "g").state == .failed)
            try await fixture.check()
        }
    }

    @Test func unknownFileIsLookedAtFromTheThirdTryOn() async throws {
        var policy = StoreFixture.smallPolicy
        policy.attempts = 8
        try await StoreFixture.run(policy: policy) { fixture in
            try await fixture.makeGroup("g", [Wanted("t")], isSealed: true)
            var worker = try await fixture.makeWorker()
            for expected in [Look.refused, .refused, .failed] {
                let lease = try await Self.next(fixture, &worker)
                #expect(lease.looks == expected && lease.rung == .chunks)
                try await worker.fail(lease, .httpStatus(503), status: 503, random: 0)
            }
        }
    }

    /// After being told to wait repeatedly, the worker asks by a plain GET at once. A 503 mostly passes by itself.
    @Test(arguments: [429, 503]) func fileThatIsToldToWaitRepeatedlyIsRequestedByAPlainGET(status: Int) async throws {
        var policy = StoreFixture.smallPolicy
        policy.attempts = 4
        try await StoreFixture.run(policy: policy) { fixture in
            try await fixture.makeGroup("g", [Wanted("t")], isSealed: true)
            var worker = try await fixture.makeWorker()
            for expected in [Look.refused, .refused, status == 429 ? .atOnce : .failed, .atOnce] {
                let lease = try await Self.next(fixture, &worker)
                #expect(lease.looks == expected)
                try await worker.fail(lease, .httpStatus(status), status: Int32(status), random: 0)
            }
        }
    }

    /// A body that stalls after a few bytes each time makes progress, and would do so for days.
    @Test(arguments: [1_000, 70_000] as [Int64]) func stallAfterTinyProgressCountsAsATry(bytes: Int64) async throws {
        var policy = StoreFixture.smallPolicy
        policy.firstChunk = 1 << 20
        policy.attempts = 4
        try await StoreFixture.run(policy: policy) { fixture in
            try await fixture.makeGroup("g", [Wanted("t")], isSealed: true)
            var worker = try await fixture.makeWorker()
            var lease = try #require(try await worker.claim().first)
            try await worker.learn(lease, size: 1 << 20)
            var seen: [Look?] = []
            for _ in 1...4 {
                seen.append(lease.looks)
                try await worker.fail(lease, .tooSlow, at: lease.resume.offset + bytes, status: 206, random: 0)
                guard try await fixture.store.task("t", of: "g").state != .failed else { break }
                lease = try await Self.next(fixture, &worker)
            }
            let isOver = try await fixture.store.task("t", of: "g").state == .failed
            #expect(isOver == (bytes == 1_000))
            #expect(seen == [.refused] + (isOver ? [.failed, .failed, .failed] : [.ended, .refused, .ended]))
        }
    }

    /// Each ending came after progress, so it is no try. From the second ending on a look may find something out, and with each look less so.
    @Test(arguments: [FailureKind.network, .tooSlow])
    func bodiesThatEndEarlyAreLookedAtLessAndLess(kind: FailureKind) async throws {
        var policy = StoreFixture.smallPolicy
        policy.firstChunk = 1 << 20
        try await StoreFixture.run(policy: policy) { fixture in
            try await fixture.makeGroup("g", [Wanted("t")], isSealed: true)
            var worker = try await fixture.makeWorker()
            var lease = try #require(try await worker.claim().first)
            try await worker.learn(lease, size: 1 << 20)
            var seen: [Int] = []
            for ending in 1...9 {
                if lease.looks == .ended { seen.append(ending) }
                try await worker.fail(lease, kind, at: lease.resume.offset + 70_000, status: 206, random: 0)
                lease = try await Self.next(fixture, &worker)
            }
            #expect(seen == [2, 4, 8])
        }
    }

    /// As long as another source may serve whole parts, that source is the better way out.
    @Test func mirrorsWhosePartsAllEndEarlyAreLookedAt() async throws {
        var policy = StoreFixture.smallPolicy
        policy.firstChunk = 1 << 20
        try await StoreFixture.run(policy: policy) { fixture in
            try await fixture.makeGroup("g", [Wanted("t", origins: ["a", "b"])], isSealed: true)
            var worker = try await fixture.makeWorker()
            var lease = try #require(try await worker.claim().first)
            try await worker.learn(lease, size: 1 << 20)
            try await fixture.set("tasks", "mixes", to: true)
            var ended: Set<Int32> = []
            var seen: [Look] = []
            for _ in 1...8 {
                if let look = lease.looks {
                    #expect(ended.union([lease.source]) == [0, 1])
                    seen.append(look)
                }
                ended.insert(lease.source)
                try await worker.fail(lease, .network, at: lease.resume.offset + 70_000, status: 206, random: 0)
                lease = try await Self.next(fixture, &worker)
            }
            #expect(ended == [0, 1])
            #expect(!seen.isEmpty && seen.allSatisfy { $0 == .ended })
        }
    }

    /// Another source is the better way out.
    @Test func sourceThatIsNotTheLastOneIsNotLookedAt() async throws {
        try await StoreFixture.run { fixture in
            var worker = try await Self.begin(fixture, origins: ["a", "b"])
            let lease = try await Self.next(fixture, &worker)
            #expect(lease.looks == nil)
        }
    }

    /// Only a look may discard bytes: the database does not guess (rows 20 to 26).
    @Test func failedTaskKeepsItsBytesAndItsVersion() async throws {
        for kind in [FailureKind.httpStatus(500), .httpStatus(400), .network] {
            try await StoreFixture.run { fixture in
                var worker = try await Self.begin(fixture)
                while try await fixture.store.task("t", of: "g").state != .failed {
                    let lease = try await Self.next(fixture, &worker)
                    try await worker.fail(
                        lease, kind, status: kind == .network ? nil : kind == .httpStatus(400) ? 400 : 500, random: 0)
                }
                #expect(try await fixture.store.task("t", of: "g").version == 1)
                _ = try await fixture.store.apply(.retry, to: "g", keys: nil)
                let again = try await Self.next(fixture, &worker)
                #expect(again.start > 0 && again.version == 1 && again.rung == .chunks)
            }
        }
    }

    @Test func restartMovesTheTaskToTheNamedRung() async throws {
        try await StoreFixture.run { fixture in
            var worker = try await Self.begin(fixture)
            let lease = try await Self.next(fixture, &worker)
            try await worker.restart(lease, on: .whole)
            let again = try #require(try await worker.claimWork().first)
            #expect(again.rung == .whole && again.version == 2 && again.start == 0 && again.end == nil)
            #expect(try await fixture.store.task("t", of: "g").attempts == 0)
        }
    }

    /// A restart that leads no lower is a try, so that restarts end (I12).
    @Test func restartThatLeadsNoLowerIsATry() async throws {
        try await StoreFixture.run { fixture in
            var worker = try await Self.begin(fixture)
            var lease = try await Self.next(fixture, &worker)
            for count in 1...fixture.policy.attempts {
                #expect(lease.rung == .chunks)
                try await worker.restart(lease, on: .chunks)
                guard count < fixture.policy.attempts else { break }
                lease = try #require(try await worker.claimWork().first)
            }
            try await fixture.check()
            #expect(try await fixture.store.task("t", of: "g").state == .failed)
        }
    }
}
