import Crypto
import Glibc
import MusterAPI
import MusterCore
import Testing

@testable import MusterWorker

/// Nothing is kept of content that was found to be wrong (range contract, row 29), nor of content that newer content has replaced.
@Suite struct DiscardTests {
    let bytes = ScratchSink.content(10_000)
    var wrongDigest: ContentDigest { ContentDigest(algorithm: .sha256, bytes: SHA256.hash(data: [1])) }

    @Test(arguments: [false, true], ExistingFileRule.allCases)
    func nothingIsLeftAfterAWrongDigest(fenced: Bool, rule: ExistingFileRule) async throws {
        try await ScratchSink.with { scratch in
            try scratch.makePart(1, version: 2, bytes)
            try scratch.write([1], to: "\(ScratchSink.parts)/1.1.part")
            try scratch.makePart(2, bytes)
            let order = try scratch.order(
                1,
                version: 2,
                path: "f",
                bytes,
                expected: [wrongDigest],
                fenced: fenced,
                ifExists: rule
            )
            #expect(try await scratch.finalizer.finalize(order).failure?.kind == .digestMismatch)
            #expect(try scratch.partNames() == ["2.1.part"])
            #expect(try scratch.fileNames() == [])
            // A job that redoes it finds nothing, and the content is fetched anew.
            let error = await #expect(throws: StorageError.self) { try await scratch.finalizer.finalize(order) }
            #expect(error?.failureKind == .changed)
        }
    }

    @Test func aFileThatWasThereStaysWhenTheContentIsWrong() async throws {
        try await ScratchSink.with { scratch in
            for rule in ExistingFileRule.allCases {
                try scratch.write([1, 2, 3], to: "f")
                try scratch.makePart(1, bytes)
                let order = try scratch.order(1, path: "f", bytes, expected: [wrongDigest], ifExists: rule)
                #expect(try await scratch.finalizer.finalize(order).failure?.kind == .digestMismatch)
                #expect(try scratch.read("f") == [1, 2, 3])
                #expect(try scratch.fileNames() == ["f"])
            }
        }
    }

    @Test func newerContentIsNotTouched() async throws {
        try await ScratchSink.with { scratch in
            try scratch.makePart(1, version: 1, bytes)
            try scratch.write([1], to: "\(ScratchSink.parts)/1.2.part")
            let order = try scratch.order(1, version: 1, epoch: 10, path: "f", bytes, expected: [wrongDigest])
            _ = try await scratch.finalizer.finalize(order)
            #expect(try scratch.partNames() == ["1.2.part"])
        }
    }

    @Test func aLeaseThatIsOverDeletesNothing() async throws {
        try await ScratchSink.with { scratch in
            try scratch.makePart(1, bytes)
            let order = try scratch.order(1, path: "f", bytes, chunkSize: 10_000, expected: [wrongDigest])
            let calls = CallCount()
            // The lease is over as soon as the last byte was read.
            let watch = FinalizeWatch(mayContinue: { calls.value == 0 }, verified: { _ in calls.add() })
            _ = try await scratch.finalizer.finalize(order, watch: watch)
            #expect(calls.value > 0)
            #expect(try scratch.partNames() == ["1.1.part"])
        }
    }

    @Test func aPartThatWasReplacedMeanwhileIsNotDeleted() async throws {
        try await ScratchSink.with { scratch in
            try scratch.makePart(1, bytes)
            let part = scratch.path + "/\(ScratchSink.parts)/1.1.part"
            let watch = FinalizeWatch(verified: { _ in
                unlink(part)
                #expect(throws: Never.self) { try scratch.write([1], to: "\(ScratchSink.parts)/1.1.part") }
            })
            let order = try scratch.order(1, path: "f", bytes, chunkSize: 10_000, expected: [wrongDigest])
            _ = try await scratch.finalizer.finalize(order, watch: watch)
            #expect(try scratch.read("\(ScratchSink.parts)/1.1.part") == [1])
        }
    }

    @Test func writerWithThePartOpenCannotGoOnWithIt() async throws {
        try await ScratchSink.with { scratch in
            let part = try scratch.sink.part(task: TaskID(1), version: 1)
            try part.write(bytes, at: 0)
            let order = try scratch.order(1, path: "f", bytes, expected: [wrongDigest])
            _ = try await scratch.finalizer.finalize(order)
            let error = #expect(throws: StorageError.self) { try part.write([1], at: 0) }
            #expect(error?.failureKind == .changed)
            #expect(try scratch.sink.part(task: TaskID(1), version: 1) !== part)
        }
    }

    @Test func aFinishedFileLeavesNothingOfOlderContent() async throws {
        try await ScratchSink.with { scratch in
            for fenced in [false, true] {
                try scratch.makePart(1, version: 3, bytes)
                // A late worker made the older part anew.
                try scratch.makePart(1, version: 2, [1])
                let order = try scratch.order(1, version: 3, path: "f", bytes, fenced: fenced)
                #expect(try await scratch.finalizer.finalize(order).isInPlace)
                #expect(try scratch.partNames() == [])
            }
        }
    }

    /// This includes a part that a worker of this process still writes: by its name, it could replace the newer content's file.
    @Test func openingNewerContentTakesTheNameFromOlderPartsAtOnce() async throws {
        try await ScratchSink.with { scratch in
            let old = try scratch.sink.part(task: TaskID(1), version: 1)
            try old.write(bytes, at: 0)
            try scratch.makePart(1, version: 2, [1])
            #expect(try scratch.partNames() == ["1.2.part"])
            let error = await #expect(throws: StorageError.self) { try await scratch.sync.makeDurable(old) }
            #expect(error?.failureKind == .changed)
            let late = try scratch.order(1, version: 1, path: "f", bytes, ifExists: .replace)
            await #expect(throws: StorageError.self) { try await scratch.finalizer.finalize(late) }
            #expect(!scratch.exists("f"))
        }
    }

    @Test func purgeLeavesNothingInWhateverStateAFinalizationDied() async throws {
        try await ScratchSink.with { scratch in
            try scratch.makePart(1, version: 3, bytes)
            for name in ["1.1.part", "1.2.part"] {
                try scratch.write([1], to: "\(ScratchSink.parts)/" + name)
            }
            try scratch.write(bytes, to: "f (2)")
            let file = PurgeOrder.File(path: try DestinationPath(validating: "f (2)"), size: 10_000)
            try scratch.sink.purge([PurgeOrder(task: TaskID(1), file: file)])
            #expect(try scratch.partNames() == [])
            #expect(try scratch.fileNames() == [])
        }
    }
}
