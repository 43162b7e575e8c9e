import MusterCore
import MusterStore
import Testing

/// Parallel use of several sources for one file, if their bytes are known to be the same (range contract, row 30).
@Suite struct PullTests {
    /// A task of `chunks` chunks at `a` and its mirrors, whose first chunk is done and stated a strong ETag.
    private func begin(
        _ fixture: StoreFixture, chunks: Int64 = 20, origins: [String] = ["a", "b"], etag: String = "\"strong\""
    ) async throws -> TestWorker {
        try await fixture.makeGroup("g", [Wanted("t", origins: origins)], isSealed: true)
        var worker = try await fixture.makeWorker()
        let first = try #require(try await worker.claim().first)
        try await worker.answer(first, size: chunks * 100, etag: etag)
        try await worker.done(first)
        return worker
    }

    /// The number of leases per source.
    private func shares(_ leases: [GrantedLease]) -> [Int32: Int] {
        Dictionary(leases.map { ($0.source, 1) }, uniquingKeysWith: +)
    }

    @Test func mirrorsShareTheRoomEvenlyWhileNothingIsKnownOfThem() async throws {
        try await StoreFixture.run { fixture in
            var worker = try await begin(fixture, origins: ["a", "b", "c"])
            let leases = try await worker.claim(9)
            #expect(shares(leases) == [0: 3, 1: 3, 2: 3])
            for lease in leases {
                #expect(lease.isOtherMirror == (lease.source != 0))
                #expect(lease.url == "http://\(["a", "b", "c"][Int(lease.source)]).test/t")
                #expect(lease.representation.etag == "\"strong\"" && lease.representation.isDateStrong == true)
            }
            try await fixture.check()
        }
    }

    @Test func theSlowestMirrorIsUsedLeast() async throws {
        try await StoreFixture.run { fixture in
            var worker = try await begin(fixture)
            try await fixture.setBrought(by: 0, bytes: 1_000_000, in: .seconds(4))
            try await fixture.setBrought(by: 1, bytes: 1_000_000, in: .seconds(1))
            let leases = try await worker.claim(10)
            #expect(shares(leases) == [0: 2, 1: 8])
            try await fixture.check()
        }
    }

    @Test func chunksBeyondAMirrorsCapGoToTheOthers() async throws {
        try await StoreFixture.run { fixture in
            var worker = try await begin(fixture, origins: ["a", "b", "c"])
            try await fixture.capOrigins("a", at: 2)
            try await fixture.restOrigins("c", for: .seconds(3_600))
            #expect(shares(try await worker.claim(10)) == [0: 2, 1: 8])
            try await fixture.check()
        }
    }

    @Test func aGroupWhoseOwnOriginIsBusyIsServedByItsMirrors() async throws {
        try await StoreFixture.run { fixture in
            var worker = try await begin(fixture)
            try await fixture.restOrigins("a", for: .seconds(3_600))
            #expect(shares(try await worker.claim(4)) == [1: 4])
            try await fixture.check()
        }
    }

    @Test func capsOfGroupsHoldAcrossMirrors() async throws {
        try await StoreFixture.run { fixture in
            var worker = try await begin(fixture)
            try await fixture.capGroups(at: 5)
            #expect(try await worker.claim(10).count == 5)
            #expect(try await worker.claim(10).isEmpty)
            try await fixture.check()
        }
    }

    @Test func nothingIsPulledWithoutAStrongValidator() async throws {
        try await StoreFixture.run { fixture in
            var worker = try await begin(fixture, etag: "W/\"weak\"")
            #expect(shares(try await worker.claim(30)) == [0: 16])
            try await fixture.check()
        }
    }

    @Test func deadDifferingAndQuestionedSourcesTakeNothing() async throws {
        try await StoreFixture.run { fixture in
            var worker = try await begin(fixture, origins: ["a", "b", "c", "d"])
            try await fixture.giveUp(source: 1)
            try await fixture.setDiffering(source: 2)
            try await fixture.askResolver(about: 3)
            #expect(shares(try await worker.claim(30)) == [0: 16])
            try await fixture.check()
        }
    }

    @Test func chunkThatFailedIsNotPulled() async throws {
        try await StoreFixture.run { fixture in
            var worker = try await begin(fixture, chunks: 3)
            try await fixture.setChunk(at: 100, attempts: 1)
            try await fixture.setChunk(at: 200, moves: 1)
            #expect(shares(try await worker.claim(30)) == [0: 2])
            try await fixture.check()
        }
    }

    @Test func groupsWithoutMirrorsAreServedBesideMirrors() async throws {
        try await StoreFixture.run { fixture in
            var worker = try await begin(fixture)
            _ = try await fixture.store.group("g")
            try await fixture.makeGroup("h", Wanted.many(3, "h", origins: ["x"]), isSealed: true)
            let leases = try await worker.claim(64)
            #expect(leases.count { $0.group == "h" } == 3 && leases.count { $0.group == "g" } == 19)
            try await fixture.check()
            for lease in leases where lease.group == "g" { try await worker.done(lease) }
            try await worker.finishEverything()
            #expect(try await fixture.store.group("g").state == .succeeded)
        }
    }

    /// `get` gives up a source sooner that refuses connections; the tries of the other one go on.
    @Test func mirrorThatIsNotReachedIsGivenUpAlone() async throws {
        var policy = StoreFixture.smallPolicy
        policy.attempts = 5
        policy.unreachedAttempts = 2
        try await StoreFixture.run(policy: policy) { fixture in
            try await fixture.makeGroup("g", [Wanted("t", origins: ["busy", "closed"])], isSealed: true)
            var worker = try await fixture.makeWorker()
            var asked: [Int32] = []
            while let lease = try await worker.claim().first, asked.count < 100 {
                asked.append(lease.source)
                let isClosed = lease.source == 1
                try await worker.fail(
                    lease, isClosed ? .network : .httpStatus(503), status: isClosed ? nil : 503, isUnreached: isClosed,
                    isUnanswered: isClosed, random: 0)
                try await fixture.passBackoffs()
                try await fixture.check()
            }
            let task = try await fixture.store.task("t", of: "g")
            #expect(task.state == .failed && task.failure?.status == 503)
            #expect(asked == [0, 1, 0, 1, 0, 0, 0])
        }
    }

    /// A chunk that is still leased at a mirror goes to the other one if the mirror, which is not reached, has been given up meanwhile.
    @Test func chunkOfAMirrorThatIsGivenUpGoesToTheOther() async throws {
        var policy = StoreFixture.smallPolicy
        policy.attempts = 5
        policy.unreachedAttempts = 1
        try await StoreFixture.run(policy: policy) { fixture in
            var worker = try await begin(fixture)
            let leases = try await worker.claim(10).filter { $0.source == 1 }
            try #require(leases.count >= 2, "both sources bring some of the chunks")
            func refuse(_ lease: GrantedLease) async throws {
                try await worker.fail(lease, .network, isUnreached: true, isUnanswered: true, random: 0)
            }
            try await refuse(leases[0])
            // By now it is certain that the origin is out: from here on each refusal is a try.
            try await fixture.set(.doubt, .originBytes, .grant, ago: .seconds(3))
            try await fixture.giveUp(source: 1)
            try await refuse(leases[1])
            try await fixture.check()
            let task = try await fixture.store.task("t", of: "g")
            #expect(task.state != .failed && task.failure?.kind == .network)
            try await fixture.passBackoffs()
            let next = try await worker.claim(10)
            #expect(next.contains { $0.start == leases[1].start } && next.allSatisfy { $0.source == 0 })
        }
    }
}
