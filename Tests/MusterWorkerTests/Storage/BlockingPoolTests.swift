import Glibc
import MusterSystem
import Synchronization
import Testing

@testable import MusterWorker

@Suite struct BlockingPoolTests {
    @Test func workRunsAndAnswers() async throws {
        let pool = try BlockingPool(threads: 3)
        let sum = await withTaskGroup(of: Int.self) { group in
            for number in 0..<500 { group.addTask { (try? await pool.run { number }) ?? 0 } }
            return await group.reduce(0, +)
        }
        #expect(sum == 499 * 500 / 2)
        await pool.shutdown()
    }

    @Test func storageErrorsComeBackAsTheyAre() async throws {
        let pool = try BlockingPool(threads: 1)
        let error = StorageError.full(.init("no room", errno: ENOSPC))
        await #expect(throws: error) {
            try await pool.run(storage: { () throws(StorageError) -> Int in throw error })
        }
        await pool.shutdown()
    }

    @Test func workThatMakesCallsIsAtTheLastOfThem() async throws {
        let pool = try BlockingPool(threads: 1)
        #expect(pool.busySince == nil)
        let begun = MonotonicClock.now()
        let (first, second) = try await pool.run { [pool] in
            let first = pool.busySince
            while MonotonicClock.now() <= first ?? .max {}
            BlockingPool.beat()
            return (first, pool.busySince)
        }
        #expect(try #require(first) >= begun)
        #expect(try #require(second) > first ?? .max)
        BlockingPool.beat()
        await pool.shutdown()
        #expect(pool.busySince == nil)
    }

    @Test func moreThanThePlacesIsRefused() async throws {
        let pool = try BlockingPool(threads: 1, places: 1)
        var ends: [Int32] = [0, 0]
        try #require(pipe(&ends) == 0)
        let (gate, opener) = (ends[0], ends[1])
        let started = AsyncStream.makeStream(of: Void.self)
        #expect(
            pool.submit {
                started.continuation.finish()
                var byte: UInt8 = 0
                _ = read(gate, &byte, 1)
            } == nil
        )
        for await _ in started.stream {}
        #expect(pool.submit {} == nil)
        #expect(pool.submit {} == .overloaded)
        close(opener)
        await pool.shutdown()
        close(gate)
    }

    @Test func shutdownDoesWhatWaitsAndRefusesTheRest() async throws {
        let pool = try BlockingPool(threads: 2)
        let count = Atomic<Int>(0)
        for _ in 0..<200 { _ = pool.submit { count.add(1, ordering: .relaxed) } }
        await pool.shutdown()
        #expect(count.load(ordering: .relaxed) == 200)
        #expect(pool.submit {} == .stopped)
        await pool.shutdown()
    }
}
