import MusterCore
import MusterPostgres
import MusterStore
import Testing

/// A source that refused a file and serves others may have a limit, for which the file was not kept waiting as long as another source was left.
@Suite struct RefusedSourceTests {
    private static func begin(
        _ fixture: StoreFixture, serves: Bool = false, isBusy: Bool = false
    ) async throws -> TestWorker {
        if isBusy {
            try await fixture.makeGroup("other", [Wanted("u", origins: ["a"])], isSealed: true)
            var other = try await fixture.makeWorker("other")
            #expect(try await other.claim().count == 1)
        }
        try await fixture.makeGroup("g", [Wanted("t", origins: ["a", "b"])], isSealed: true)
        if serves {
            try await fixture.run(
                """
                INSERT INTO origin_flow (origin_id, bytes, answers, at)
                SELECT origin_id, 1000, 9, statement_timestamp() FROM sources WHERE ordinal = 0 LIMIT 1
                """)
        }
        return try await fixture.makeWorker()
    }

    @Test(arguments: [401, 409, 410, 421]) func itIsAskedOnceMoreWhenNoOtherIsLeft(status: Int) async throws {
        try await StoreFixture.run { fixture in
            var worker = try await Self.begin(fixture, serves: true)
            var lease = try #require(try await worker.claim().first)
            #expect(lease.source == 0 && lease.mayMoveOn)
            try await worker.refuse(lease, status)
            lease = try #require(try await worker.claim().first)
            #expect(lease.source == 1)
            try await worker.refuse(lease, 451)
            // It has its tries then, as the only source of a file.
            var tries = 0
            while try await fixture.store.group("g").state == .sealed, tries < 9 {
                try await fixture.passBackoffs()
                try await fixture.check()
                lease = try #require(try await worker.claimWork().first)
                #expect(lease.source == 0 && !lease.mayMoveOn)
                try await worker.refuse(lease, status)
                tries += 1
            }
            #expect((1...8).contains(tries))
            #expect(try await fixture.store.group("g").state == .failed)
            try await fixture.check()
        }
    }

    /// Nothing of the other file has come yet.
    @Test func itIsAskedOnceMoreWhileAnotherFileIsBeingFetchedThere() async throws {
        try await StoreFixture.run { fixture in
            var worker = try await Self.begin(fixture, isBusy: true)
            for (source, status) in [(0, 410), (1, 451)] as [(Int32, Int)] {
                let lease = try #require(try await worker.claim().first)
                #expect(lease.source == source)
                try await worker.refuse(lease, status)
            }
            #expect(try await worker.claim().map(\.source) == [0])
            try await fixture.check()
        }
    }

    /// The other source is out: it has had one try when the one that serves is asked once more.
    @Test(arguments: [nil, 502]) func itIsAskedOnceMoreWhileTheOtherIsOut(status: Int?) async throws {
        try await StoreFixture.run { fixture in
            var worker = try await Self.begin(fixture, serves: true)
            let refused = try #require(try await worker.claim().first)
            try await worker.refuse(refused, 404)
            let lease = try #require(try await worker.claim().first)
            #expect(lease.source == 1)
            if let status {
                try await worker.refuse(lease, status)
            } else {
                try await worker.fail(lease, .network, isUnreached: true)
            }
            try await fixture.passBackoffs()
            let again = try #require(try await worker.claim().first)
            #expect(again.source == 0 && !again.mayMoveOn)
            // It is given up after that, and the other source has its tries.
            try await worker.refuse(again, 404)
            try await fixture.passBackoffs()
            var sources: Set<Int32> = []
            while let next = try await worker.claimWork().first {
                sources.insert(next.source)
                try await worker.refuse(next, next.source == 0 ? 404 : 502)
                try await fixture.passBackoffs()
            }
            #expect(sources.contains(1))
            #expect(try await fixture.store.group("g").state == .failed)
            try await fixture.check()
        }
    }

    @Test func itIsGivenUpIfItServesNothing() async throws {
        try await StoreFixture.run { fixture in
            var worker = try await Self.begin(fixture)
            for (source, status) in [(0, 410), (1, 451)] as [(Int32, Int)] {
                let lease = try #require(try await worker.claim().first)
                #expect(lease.source == source)
                try await worker.refuse(lease, status)
            }
            #expect(try await fixture.store.group("g").state == .failed)
            try await fixture.check()
        }
    }
}
