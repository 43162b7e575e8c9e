import MusterCore
import MusterStore
import Testing

/// How the store treats a lease that failed, by the rule of its failure kind (I12).
@Suite struct FailureTests {
    @Test func retryTakesTheNextSourceAtOnceAndThenWaits() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("t", origins: ["a", "b"])])
            var worker = try await fixture.makeWorker()
            let first = try #require(try await worker.claim().first)
            try await worker.fail(first, .network)
            try await fixture.check()
            let second = try #require(try await worker.claim().first)
            #expect(second.source == 1 && second.url == "http://b.test/t")
            try await worker.fail(second, .httpStatus(503))
            try await fixture.check()
            // Every source has been tried: the backoff is 1 s × 2ⁿ⁻¹ × random after the n-th round.
            let wait = try #require(try await fixture.waits().first)
            #expect(wait > -60 && wait <= 1)
            #expect(try await worker.claim().isEmpty)
            for source in [0, 1, 0, 1] as [Int32] {
                try await fixture.passBackoffs()
                let lease = try #require(try await worker.claim().first)
                #expect(lease.source == source)
                try await worker.fail(lease, .timeout)
                try await fixture.check()
            }
            let task = try await fixture.store.task("t", of: "g")
            #expect(task.state == .failed && task.failure?.kind == .timeout && task.attempts == 6)
        }
    }

    @Test func progressResetsTheAttempts() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("t", size: 100)])
            var worker = try await fixture.makeWorker()
            for step in 1...6 {
                let lease = try #require(try await worker.claim().first)
                try await worker.fail(lease, .network, at: Int64(step * 10), random: 0)
                try await fixture.check()
            }
            let task = try await fixture.store.task("t", of: "g")
            #expect(task.state == .queued && task.bytesDone == 60 && task.attempts == 1, "each try had progress")
        }
    }

    @Test func progressOfAStreamDoesNotResetTheAttempts() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("t")], isSealed: true)
            var worker = try await fixture.makeWorker()
            for _ in 1...3 {
                let lease = try #require(try await worker.claimWork().first)
                try await worker.learn(lease, size: nil, isSplittable: false)
                try await worker.fail(lease, .network, at: 50, random: 0)
                try await fixture.check()
            }
            #expect(try await fixture.store.group("g").state == .failed)
        }
    }

    @Test func sourceWithAPermanentFailureIsDropped() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("t", origins: ["a", "b", "c"])], isSealed: true)
            var worker = try await fixture.makeWorker()
            for source in 0..<3 as Range<Int32> {
                let lease = try #require(try await worker.claim().first)
                #expect(lease.source == source)
                try await worker.fail(lease, .notFound)
                try await fixture.check()
            }
            let task = try await fixture.store.task("t", of: "g")
            #expect(task.state == .failed && task.failure?.kind == .notFound)
            #expect(try await fixture.store.group("g").state == .failed)
            // A retry starts with all sources again.
            _ = try await fixture.store.apply(.retry, to: "g", keys: nil)
            #expect(try await worker.claim().count == 1)
            try await fixture.check()
        }
    }

    @Test func changedContentRaisesTheVersionUpToTheLimit() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("t")], isSealed: true)
            var worker = try await fixture.makeWorker()
            for version in 1...3 as ClosedRange<Int32> {
                let leases = try await worker.claimWork(5)
                let lease = try #require(leases.first)
                #expect(lease.version == version && lease.resume.offset == 0 && lease.representation.etag == nil)
                // The last allowed version is fetched by a plain GET.
                #expect(lease.rung == (version == 3 ? .whole : .chunks))
                try await worker.learn(lease, size: 250)
                let other = version == 3 ? lease : try #require(try await worker.claim().first)
                try await worker.progress(other, to: other.start + 10)
                if version < 3 { try await worker.done(lease) }
                try await fixture.check()
                try await worker.fail(other, .changed)
                try await fixture.check()
            }
            #expect(try await fixture.store.task("t", of: "g").state == .failed)
            let types = try await fixture.events().map(\.type)
            #expect(
                types == Array(repeating: "dev.muster.task.changed.v1", count: 3)
                    + ["dev.muster.task.failed.v1", "dev.muster.group.failed.v1"])
            let group = try await fixture.store.group("g")
            #expect(group.bytesDone == 0 && group.unknownTasks == 0)
        }
    }

    @Test func wrongDigestStartsOverFromFinalizing() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("t", size: 150)], isSealed: true)
            var worker = try await fixture.makeWorker()
            let lease = try #require(try await worker.claim().first)
            try await worker.learn(lease, size: 150)
            try await worker.done(lease)
            try await worker.done(try #require(try await worker.claim().first))
            let finalize = try #require(try await worker.claim().first)
            try await worker.fail(finalize, .digestMismatch)
            try await fixture.check()
            let task = try await fixture.store.task("t", of: "g")
            #expect(task.state == .queued && task.version == 2 && task.bytesDone == 0)
            try await worker.finishEverything()
            try await fixture.check()
            #expect(try await fixture.store.group("g").state == .succeeded)
        }
    }

    /// The unknown size of a failed task must not keep the group's progress from being measured in bytes.
    @Test func aFailedTaskOfUnknownSizeNoLongerCountsAsUnknown() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("t"), Wanted("u", size: 50)], isSealed: true)
            var worker = try await fixture.makeWorker()
            let leases = try await worker.claimWork(5)
            let lease = try #require(leases.first { $0.key == "t" })
            try await worker.fail(lease, .notFound)
            try await fixture.check()
            #expect(try await fixture.store.task("t", of: "g").state == .failed)
            #expect(try await fixture.store.group("g").unknownTasks == 0)
            _ = try await fixture.store.apply(.retry, to: "g", keys: nil)
            try await fixture.check()
            #expect(try await fixture.store.group("g").unknownTasks == 1)
            _ = try await fixture.store.remove("g", keys: ["t"], deletingFiles: false)
            try await fixture.check()
            #expect(try await fixture.store.group("g").unknownTasks == 0)
        }
    }

    @Test func failedTaskKeepsItsBytesForARetry() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("t", size: 90)], isSealed: true)
            var worker = try await fixture.makeWorker()
            let lease = try #require(try await worker.claim().first)
            try await worker.learn(lease, size: 90)
            try await worker.fail(lease, .storage, at: 30)
            try await fixture.check()
            #expect(try await fixture.store.group("g").state == .failed)
            #expect(try await worker.claim().isEmpty)
            _ = try await fixture.store.apply(.retry, to: "g", keys: nil)
            #expect(try await worker.claim().first?.resume.offset == 30)
            try await fixture.check()
        }
    }

    @Test func fullStorageGivesTheChunkBackUntouched() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("t", size: 90)])
            var worker = try await fixture.makeWorker()
            for _ in 0..<5 {
                let lease = try #require(try await worker.claim().first)
                try await worker.fail(lease, .storageFull)
                try await fixture.check()
            }
            #expect(try await fixture.store.task("t", of: "g").attempts == 0)
        }
    }

    @Test func taskWithoutRoomGoesBehindTheOthersAndFailsInTheEnd() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("huge", size: 900, origins: ["a", "b"])] + Wanted.many(3))
            var worker = try await fixture.makeWorker()
            let first = try #require(try await worker.claim().first)
            #expect(first.path == "huge")
            try await worker.learn(first, size: 900)
            try await worker.fail(first, .noSpace)
            try await fixture.check()
            let roomless = try await fixture.store.explanation(of: "g").situation.roomless
            #expect(roomless.tasks == 1 && roomless.first.map(\.key) == ["huge"])
            #expect(roomless.first.first?.detail?.isEmpty == false)
            #expect(try await worker.claim().first?.path != "huge", "its other chunks don't go first either")
            try await fixture.passBackoffs()
            #expect(try await worker.claim(2).map(\.path).contains("huge") == false)
            var tries = 1
            while let lease = try await worker.claim().first, tries < 20 {
                #expect(lease.path == "huge" && lease.source == first.source)
                tries += 1
                try await worker.fail(lease, .noSpace)
                try await fixture.check()
                try await fixture.passBackoffs()
            }
            #expect(tries < 20)
            let task = try await fixture.store.task("huge", of: "g")
            #expect(task.state == .failed && task.failure?.kind == .noSpace)
        }
    }

    @Test func originThatStatesRetryAfterRests() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Wanted.many(3) + [Wanted("other", origins: ["b"])])
            var worker = try await fixture.makeWorker()
            let lease = try #require(try await worker.claim().first)
            try await worker.fail(lease, .httpStatus(429), retryAfter: 1_000_000)
            try await fixture.check()
            // The origin is probed long before that.
            let retry = try #require(try await fixture.store.tasksInTrouble(of: "g", limit: 1).first?.retry)
            #expect(try #require(retry.inSeconds) <= 30)
            try await fixture.passBackoffs()
            #expect(try await worker.claim(9).map(\.path) == ["other"])
            let paused = try await fixture.store.origins(after: nil, limit: 10).filter { $0.pausedUntil != nil }
            #expect(paused.map(\.key) == ["http://a.test:80"] && paused[0].isTried)
            #expect(try await fixture.store.group("g").areOriginsTried)
            let rest = try #require(try await fixture.origins().compactMap(\.rest).max())
            #expect(rest <= 3600 * 1.1)
            try await fixture.restOrigins(for: nil)
            #expect(try await worker.claim(9).count == 3)
        }
    }

    @Test func finalizingFailsInTheEndWhateverTheRule() async throws {
        for kind in [FailureKind.network, .sizeMismatch, .tls] {
            try await StoreFixture.run { fixture in
                try await fixture.makeGroup("g", [Wanted("t", size: 90, origins: ["a", "b"])], isSealed: true)
                var worker = try await fixture.makeWorker()
                let lease = try #require(try await worker.claim().first)
                try await worker.learn(lease, size: 90)
                try await worker.done(lease)
                var tries = 0
                while let finalize = try await worker.claim().first, tries < 10 {
                    tries += 1
                    try await worker.fail(finalize, kind)
                    try await fixture.check()
                    try await fixture.passBackoffs()
                }
                #expect(tries <= 3)
                #expect(try await fixture.store.group("g").state == .failed)
            }
        }
    }

    @Test func purgeIsTriedUntilItWorks() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("t")])
            var worker = try await fixture.makeWorker()
            _ = try await worker.claim()
            _ = try await fixture.store.apply(.cancel, to: "g", keys: nil)
            try await worker.letGo()
            for _ in 0..<10 {
                let purge = try #require(try await worker.claim().first)
                try await worker.fail(purge, .storage)
                try await fixture.check()
                #expect(try await worker.claim().isEmpty)
                try await fixture.passBackoffs()
            }
        }
    }

    /// Each rung is a step down and no try; only restarts on the last one count as tries (range contract, "The ladder").
    @Test func restartLeadsDownTheLadder() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("t")], isSealed: true)
            var worker = try await fixture.makeWorker()
            let first = try #require(try await worker.claim().first)
            try await worker.learn(first, size: 250)
            try await worker.restart(first)
            try await fixture.check()
            let second = try #require(try await worker.claimWork().first)
            #expect(second.rung == .stream && second.version == 2 && second.end == nil && second.start == 0)
            // What the source stated is kept, to recognize an error page later (row 27), even after a retry of the task.
            #expect(first.earlier == nil && second.earlier?.size == 250)
            try await worker.restart(second)
            var last = try #require(try await worker.claimWork().first)
            #expect(last.rung == .whole && last.version == 3)
            #expect(try await fixture.store.task("t", of: "g").attempts == 0)
            for _ in 1..<3 {
                try await worker.restart(last)
                last = try #require(try await worker.claimWork().first)
            }
            #expect(last.earlier?.size == 250)
            try await worker.restart(last)
            try await fixture.check()
            #expect(try await fixture.store.group("g").state == .failed)
            _ = try await fixture.store.apply(.retry, to: "g", keys: nil)
            #expect(try await worker.claimWork().first?.earlier?.size == 250)
        }
    }

    /// A file that comes in pieces of 100 bytes, each with a request and a pause, would take hours.
    @Test(arguments: [100, 2_000] as [Int64]) func tinyProgressDoesNotResetTheAttempts(bytes: Int64) async throws {
        var policy = StoreFixture.smallPolicy
        policy.firstChunk = 1 << 20
        try await StoreFixture.run(policy: policy) { fixture in
            try await fixture.makeGroup("g", [Wanted("t", size: 1 << 20)])
            var worker = try await fixture.makeWorker()
            for _ in 1...3 {
                let lease = try #require(try await worker.claim().first)
                try await worker.fail(lease, .network, at: lease.resume.offset + bytes, random: 0)
                try await fixture.check()
            }
            #expect(try await fixture.store.task("t", of: "g").state == (bytes == 100 ? .failed : .queued))
        }
    }

    /// The file is given up although the number of bytes left differs each time, with or without a look by a plain GET. If other
    /// files are cut too and none is served, it is no limit.
    @Test(arguments: [1, 6]) func aBodyThatAlwaysBreaksOffSoonIsGivenUp(files: Int) async throws {
        var policy = StoreFixture.smallPolicy
        (policy.firstChunk, policy.attempts) = (1 << 20, 8)
        try await StoreFixture.run(policy: policy) { fixture in
            try await fixture.makeGroup("g", Wanted.many(files, size: 1 << 20), isSealed: true)
            var worker = try await fixture.makeWorker()
            var tries = 0
            while try await fixture.store.group("g").state == .sealed {
                for lease in try await worker.claim(Int32(files)) {
                    tries += 1
                    let left = (1 << 20) - lease.resume.offset - 100
                    let looked = lease.looks == .failed ? "; without a range: truncated, after 7 bytes" : ""
                    try await worker.fail(
                        lease, .network, at: lease.resume.offset + 100, status: 206, random: 0,
                        detail: "truncated: \(left) bytes remaining to read, after 100 bytes\(looked)")
                }
                try await fixture.check()
                try await fixture.passBackoffs()
                try await fixture.set(.learning, ago: .seconds(60))
            }
            #expect(tries <= (files == 1 ? 4 : 6 * files), "\(tries)")
        }
    }
}
