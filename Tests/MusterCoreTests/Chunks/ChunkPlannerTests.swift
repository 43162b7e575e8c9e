import MusterCore
import MusterTestSupport
import Testing

private let mebibyte: Int64 = 1 << 20

struct ChunkPlannerTests {
    private let planner = ChunkPlanner()

    @Test(
        arguments: [
            (0, 16, nil, 8), (1, 16, nil, 8), (100 * mebibyte, 16, nil, 8), (160 * mebibyte, 16, nil, 10),
            (160 * mebibyte + 1, 16, nil, 10), (161 * mebibyte, 16, nil, 11), (10_000 * mebibyte, 16, nil, 256),
            (1_000 * mebibyte, 0, nil, 256), (1_000 * mebibyte, -3, nil, 256),
            // What one connection carries in 30 seconds, when that is less.
            (10_000 * mebibyte, 16, mebibyte, 30), (10_000 * mebibyte, 16, 0, 8), (10_000 * mebibyte, 16, -1, 8),
            (10_000 * mebibyte, 16, Int64.max, 256),
        ] as [(Int64, Int, Int64?, Int64)]
    )
    func chunkSizeFollowsSizeParallelismAndSpeed(size: Int64, parallelism: Int, speed: Int64?, mebibytes: Int64) {
        #expect(planner.chunkSize(size: size, parallelism: parallelism, bytesPerSecond: speed) == mebibytes * mebibyte)
    }

    @Test(arguments: 0..<500 as Range<UInt64>)
    func everyPlanTilesWithinItsBounds(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let size = random.magnitude(upTo: 50)
        let parallelism = Int(random.magnitude(upTo: 12))
        let speed: Int64? = Bool.random(using: &random) ? nil : random.magnitude(upTo: 40)
        let chunkSize = planner.chunkSize(size: size, parallelism: parallelism, bytesPerSecond: speed)

        #expect(chunkSize % mebibyte == 0)
        #expect(chunkSize >= Limits.chunk.lowerBound.bytes)
        if size <= (ChunkPlanner.maximumChunks - 1) * Limits.chunk.upperBound.bytes {
            #expect(chunkSize <= Limits.chunk.upperBound.bytes)
        }
        // As the coordinator does it: the first chunk was leased before the size was known.
        let first = ByteRange(first: min(size, planner.firstChunk))
        let rest = ChunkPlanner.cut(from: first.end, size: size, chunkSize: chunkSize)
        let plan = first.isEmpty ? rest : [first] + rest
        #expect(ByteRange.tile(plan, size: size))
        #expect(plan.count <= ChunkPlanner.maximumChunks)
        #expect(plan.allSatisfy { !$0.isEmpty && $0.count <= chunkSize })
        #expect(rest.dropLast().allSatisfy { $0.count == chunkSize })
        #expect(planner.chunkSize(size: size, parallelism: parallelism, bytesPerSecond: speed) == chunkSize)
    }

    /// Around the size at which chunks of the upper bound are too many, one byte decides.
    @Test(arguments: [-1, 0, 1, 8 * mebibyte, 256 * mebibyte, 300 * mebibyte] as [Int64], [16_383, 16_384] as [Int64])
    func aPlanNeverHasMoreChunksThanAFinalizeLeaseCarries(extra: Int64, chunks: Int64) {
        let size = chunks * Limits.chunk.upperBound.bytes + extra
        let chunkSize = planner.chunkSize(size: size, parallelism: 16)
        let rest = ChunkPlanner.cut(from: planner.firstChunk, size: size, chunkSize: chunkSize)
        #expect(rest.count + 1 <= ChunkPlanner.maximumChunks)
    }

    @Test func aFileOfAnySizeCanBeCut() {
        let chunkSize = planner.chunkSize(size: .max, parallelism: 16)
        let plan = ChunkPlanner.cut(from: 0, size: .max, chunkSize: chunkSize)
        #expect(ByteRange.tile(plan, size: .max))
        #expect(plan.count <= ChunkPlanner.maximumChunks)
    }

    @Test(
        arguments: [
            (0, 0, 8, []), (5, 5, 8, []), (9, 5, 8, []), (0, 5, 8, [5]), (0, 16, 8, [8, 16]), (0, 17, 8, [8, 16, 17]),
            (3, 17, 8, [11, 17]), (0, 3, 0, [1, 2, 3]), (0, 2, -8, [1, 2]),
        ] as [(Int64, Int64, Int64, [Int64])]
    )
    func cutsEndWhereTheyShould(start: Int64, size: Int64, chunkSize: Int64, ends: [Int64]) {
        #expect(ChunkPlanner.cut(from: start, size: size, chunkSize: chunkSize).map(\.end) == ends)
    }

    @Test func narrowedBoundsAreKept() throws {
        let planner = ChunkPlanner(bounds: .mebibytes(1)...ByteCount.mebibytes(2))
        #expect(planner.firstChunk == mebibyte)
        #expect(planner.chunkSize(size: 100 * mebibyte, parallelism: 4) == 2 * mebibyte)
        #expect(planner.chunkSize(size: mebibyte, parallelism: 4) == mebibyte)
    }
}
