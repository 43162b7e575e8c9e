import MusterAPI
import MusterCore
import MusterTestSupport
import Testing

@testable import MusterWorker

@Suite struct ChunkBoundTests {
    private let known = Representation(size: 100, etag: "\"one\"")

    private func bound(_ change: (inout LeaseDocument) -> Void = { _ in }) -> ChunkBound {
        var document = LeaseDocument.chunk("http://127.0.0.1/f", 20, 80, of: known)
        change(&document)
        return ChunkBound(document)
    }

    @Test func agreedEndIsNeitherBeforeWhatWasAskedForNorBeforeWhatWasClaimed() {
        let bound = bound()
        #expect(bound.claim(10, at: 20) == ChunkBound.Claim(count: 10, isLast: false))
        #expect(bound.shrink(to: 50) == 50)
        #expect(bound.shrink(to: 25) == 30)
        #expect(bound.agreedEnd == 30)
        #expect(bound.isFull)
        #expect(bound.claim(10, at: 30) == ChunkBound.Claim(count: 0, isLast: true))
    }

    @Test func theSameRequestAgainHasTheSameAnswer() {
        let bound = bound()
        #expect(bound.shrink(to: 50) == 50)
        _ = bound.claim(25, at: 20)
        #expect(bound.shrink(to: 50) == 50)
        #expect(bound.claim(25, at: 45) == ChunkBound.Claim(count: 5, isLast: true))
        #expect(bound.shrink(to: 50) == 50)
    }

    @Test func anEndAtTheStartMeansThePresentOffset() {
        #expect(bound().shrink(to: 20) == 21, "a chunk has a byte at least")
        let running = bound()
        _ = running.claim(25, at: 20)
        #expect(running.shrink(to: 20) == 45)
        #expect(running.isFull)
    }

    @Test func requestThatIsTooLateOrMakesNoSenseGetsTheOldEnd() {
        let bound = bound()
        #expect(bound.shrink(to: 80) == 80)
        #expect(bound.shrink(to: 90) == 80)
        _ = bound.claim(60, at: 20)
        #expect(bound.shrink(to: 50) == 80)
        #expect(bound.agreedEnd == nil)
        #expect(!bound.isFull)
    }

    @Test func tailThatWasGivenAwayComesBackUntilTheEndIsReached() {
        let bound = bound()
        #expect(bound.lengthen(to: 90) == nil, "nothing was given away")
        #expect(bound.shrink(to: 50) == 50)
        #expect(bound.lengthen(to: 40) == nil, "what comes late takes nothing away")
        #expect(bound.lengthen(to: 80) == 80)
        #expect(bound.claim(50, at: 20) == ChunkBound.Claim(count: 50, isLast: false))
        #expect(bound.claim(20, at: 70) == ChunkBound.Claim(count: 10, isLast: true), "the request goes on")
        #expect(bound.lengthen(to: 90) == nil, "it was cut there")
    }

    /// By then it is known whether the origin serves the rest to other requests.
    @Test func slowRequestThatMayBeTheOnlyOneGoesOnForTenSeconds() {
        let time = Observed<Int64>(0)
        func begin(_ mayBeOnly: Bool = true) -> ChunkBound {
            var document = LeaseDocument.chunk(
                "http://127.0.0.1/f", 0, 100, of: Representation(size: 1_000, etag: "\"one\""))
            document.planned = false
            document.asksForAll = mayBeOnly
            time.update { $0 = 0 }
            let bound = ChunkBound(document) { time.value }
            bound.divide(at: 1_000)
            _ = bound.claim(20, at: 0)
            return bound
        }
        let slow = begin()
        time.update { $0 = 2_000_000_000 }
        #expect(slow.shrink(to: 30) == 120)
        time.update { $0 = 9_000_000_000 }
        #expect(slow.shrink(to: 30) == 120, "the same request has the same answer")
        let late = begin()
        time.update { $0 = 100_000_000 }
        #expect(late.shrink(to: 30) == 1_000, "all of the rest comes by then")
        let urgent = begin()
        time.update { $0 = 2_000_000_000 }
        #expect(urgent.shrink(to: 0) == 20)
        let fast = begin()
        time.update { $0 = 1_000 }
        #expect(fast.shrink(to: 30) == 30)
        let ordinary = begin(false)
        time.update { $0 = 2_000_000_000 }
        #expect(ordinary.shrink(to: 30) == 30)
    }

    @Test func chunkWhoseRequestGoesOnIsCutAtItsEndOrALaterOne() {
        let cut = bound { $0.reach = 100 }
        #expect(cut.claim(70, at: 20) == ChunkBound.Claim(count: 60, isLast: true))
        #expect(cut.lengthen(to: 100) == nil)
        let lengthened = bound { $0.reach = 100 }
        #expect(lengthened.lengthen(to: 90) == 90)
        #expect(lengthened.claim(80, at: 20) == ChunkBound.Claim(count: 70, isLast: true))
        let ordinary = bound { $0.reach = 80 }
        #expect(ordinary.lengthen(to: 100) == nil && ordinary.agreedEnd == nil)
    }

    @Test func predecessorsBytesCountAsClaimed() {
        let bound = bound { $0.resume = DurablePrefix(offset: 60, crc: 1) }
        #expect(bound.shrink(to: 30) == 60)
        // The prefix turns out wrong, and the chunk begins over.
        #expect(bound.claim(50, at: 20) == ChunkBound.Claim(count: 40, isLast: true))
    }

    @Test func onlyRangesThatOtherJobsMayFetchAreGivenAway() {
        let stream = bound { $0.rung = .whole }
        #expect(stream.shrink(to: 50) == 80)
        let endless = bound {
            $0.rung = .whole
            $0.end = nil
        }
        #expect(endless.shrink(to: 50) == nil)
        #expect(ChunkBound().shrink(to: 50) == nil)
        let unplanned = bound { $0.planned = false }
        #expect(unplanned.shrink(to: 50) == 80)
        // The first response shows that the file is larger, and may be fetched by ranges.
        unplanned.divide(at: 70)
        #expect(unplanned.shrink(to: 50) == 50)
        #expect(unplanned.claim(100, at: 20) == ChunkBound.Claim(count: 30, isLast: true))
    }

    /// One child task writes pieces while another asks for random ends at random moments. Whichever is first at each step,
    /// no byte stands at or beyond the last agreed end, and the checksum is that of the bytes before it.
    @Test(arguments: 0..<25) func nothingIsWrittenBeyondAnAgreedEndInAnyOrder(seed: UInt64) async throws {
        try await withBench { bench, _ in
            let size: Int64 = 100_000
            let content = ScriptedOrigin.Content.seeded(seed: seed, size: size).allBytes
            let document = LeaseDocument.chunk("", 0, size, of: Representation(size: size, etag: "\"one\""))
            let control = LeaseControl(ChunkBound(document))
            let part = try #require(bench.station.equipment).directory.part(
                task: document.task, version: document.version)
            let writer = ChunkWriter(part, after: document.resume, gate: bench.gate, control: control)
            let ends = await withTaskGroup(of: [Int64].self) { group in
                group.addTask {
                    var random = JitterGenerator(seed: seed)
                    var result = ChunkWriter.Result.written
                    while result == .written, writer.offset < size {
                        let start = Int(writer.offset)
                        let piece = content[start..<min(content.count, start + .random(in: 1...4_000, using: &random))]
                        result = piece.withUnsafeBytes { writer.write($0) }
                        if .random(using: &random) { await Task.yield() }
                    }
                    return []
                }
                group.addTask {
                    var random = JitterGenerator(seed: seed &+ 1_000)
                    var ends: [Int64] = []
                    for _ in 0..<8 {
                        for _ in 0..<Int.random(in: 0..<6, using: &random) { await Task.yield() }
                        let wanted = Int64.random(in: 1...size, using: &random)
                        guard let end = control.shrink(to: wanted) else { continue }
                        #expect(end >= min(wanted, ends.last ?? size), "seed \(seed)")
                        #expect(end <= ends.last ?? size, "seed \(seed): an end moved back")
                        ends.append(end)
                    }
                    return ends
                }
                return await group.reduce([]) { $0 + $1 }
            }
            let end = try #require(ends.last)
            #expect(writer.prefix == DurablePrefix(offset: end, crc: crc(Array(content[..<Int(end)]))), "seed \(seed)")
            try #expect(bench.part(document).count == Int(end), "seed \(seed)")
        }
    }
}
