import MusterCore
import MusterPostgres
import MusterStore
import Testing

/// What is shown of origins, and their settings (range contract, row 24).
@Suite struct OriginTests {
    @Test func anOriginCanBeSetBeforeAnythingIsFetchedFromIt() async throws {
        try await StoreFixture.run { fixture in
            let record = try await fixture.store.setOrigin("http://a.test:80", maxConnections: .set(2))
            #expect(record.maxConnections == 2 && record.allowedConnections == 2 && record.connections == 0)
            #expect(record.pausedUntil == nil && record.limitedAt == nil && record.bytesPerSecond == 0)
            try await fixture.makeGroup("g", Wanted.many(5))
            var worker = try await fixture.makeWorker()
            #expect(try await worker.claim(5).count == 2)
            #expect(try await fixture.store.origins(after: nil, limit: 10).map(\.connections) == [2])
            try await fixture.check()
        }
    }

    @Test func unnamedSettingsStayAndClearedOnesReturnToTheDefault() async throws {
        try await StoreFixture.run { fixture in
            let key = "http://a.test:80"
            let later = Timestamp(microseconds: try await fixture.store.now().microseconds + 3_600_000_000)
            _ = try await fixture.store.setOrigin(key, maxConnections: .set(3), pausedUntil: .set(later))
            let paused = try await fixture.store.setOrigin(key)
            #expect(paused.maxConnections == 3 && paused.pausedUntil == later)
            try await fixture.makeGroup("g", Wanted.many(20))
            var worker = try await fixture.makeWorker()
            #expect(try await worker.claim(20).isEmpty)
            let waiting = try await fixture.store.group("g")
            #expect(waiting.pausedOrigins == [key] && waiting.originsPausedUntil == later)
            let free = try await fixture.store.setOrigin(key, pausedUntil: .clear)
            #expect(free.maxConnections == 3 && free.pausedUntil == nil)
            #expect(try await fixture.store.group("g").pausedOrigins.isEmpty)
            #expect(try await worker.claim(20).count == 3)
            let open = try await fixture.store.setOrigin(key, maxConnections: .clear)
            #expect(open.maxConnections == nil && open.allowedConnections == 16)
            #expect(try await worker.claim(20).count == 13)
        }
    }

    @Test func aNewCapResetsTheLearnedAllowance() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Wanted.many(9))
            var worker = try await fixture.makeWorker()
            try await worker.refuse(try await worker.claim(4)[0], 503)
            let limited = try #require(try await fixture.store.origins(after: nil, limit: 10).first)
            #expect(limited.allowedConnections == 8 && limited.limitedAt != nil)
            #expect(limited.limit?.status == 503 && limited.limit?.seconds == 0)
            let pausedAlone = try await fixture.store.setOrigin(limited.key, pausedUntil: .clear)
            #expect(pausedAlone.allowedConnections == 8)
            let set = try await fixture.store.setOrigin(limited.key, maxConnections: .set(12))
            #expect(set.allowedConnections == 12 && set.limitedAt == limited.limitedAt)
            #expect(set.limit == nil && set.secondsSinceRefusal != nil)
        }
    }

    @Test func speedIsZeroAfterAPauseWithoutBytes() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("t", size: 1_000_000)])
            var worker = try await fixture.makeWorker()
            let lease = try #require(try await worker.claim().first)
            #expect(try await worker.progress(lease, to: 90))
            #expect(try await fixture.store.group("g").bytesPerSecond > 0)
            try await fixture.age(.groupBytes, by: .seconds(11))
            #expect(try await fixture.store.group("g").bytesPerSecond == 0)
        }
    }

    @Test func speedIsMeasuredFromProgressChunksAndFiles() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("t", size: 250), Wanted("whole", origins: ["b"])])
            var worker = try await fixture.makeWorker()
            let leases = try await worker.claim(2)
            let chunk = try #require(leases.first { $0.path == "t" })
            try await worker.learn(chunk, size: 250)
            try await worker.progress(chunk, to: 40)
            try await worker.progress(chunk, to: 40)
            try await worker.done(chunk)
            try await worker.finish(try #require(leases.first { $0.path == "whole" }), size: 30)
            #expect(try await fixture.store.foldOriginRates() == 2)
            #expect(try await fixture.store.foldOriginRates() == 0)
            #expect(try await fixture.origins().map { $0.rateBytes.rounded() } == [100, 30])
            try await fixture.set("origins", "rate_bytes", to: 1e6)
            try await fixture.set(.originBytes, ago: .zero)
            let speeds = try await fixture.store.origins(after: nil, limit: 10).map(\.bytesPerSecond)
            #expect(speeds.allSatisfy { (1...250_000).contains($0) })
        }
    }

    @Test func speedsAreFoldedWithoutWaitingForTheOriginsLock() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("t", size: 90)])
            var worker = try await fixture.makeWorker()
            let lease = try #require(try await worker.claim().first)
            try await fixture.pool.withTransaction { connection in
                _ = try await connection.query("SELECT id FROM origins FOR NO KEY UPDATE")
                try await worker.progress(lease, to: 40)
                #expect(try await fixture.store.foldOriginRates() == 0)
            }
            #expect(try await fixture.store.foldOriginRates() == 1)
        }
    }
}
