import Glibc
import MusterCore
import Testing

@testable import MusterWorker

@Suite struct ModificationTimeTests {
    let bytes = ScratchSink.content(10_000)

    @Test(arguments: [false, true], [1_700_000_000, 0, -86_400] as [Int64])
    func aFinishedFileGetsTheTimeOfItsContent(fenced: Bool, time: Int64) async throws {
        try await ScratchSink.with { scratch in
            try scratch.makePart(1, bytes)
            let order = try scratch.order(1, path: "f", bytes, fenced: fenced, modificationTime: time)
            #expect(try await scratch.finalizer.finalize(order).isInPlace)
            #expect(scratch.modificationTime("f") == time)
            #expect(try scratch.read("f") == bytes)
        }
    }

    @Test(arguments: [3, 8])
    func aBatchGetsTheTimesOfItsContents(count: Int64) async throws {
        try await ScratchSink.with { scratch in
            for task in 1...count { try scratch.makePart(task, bytes) }
            let orders = try (1...count).map { task in
                try scratch.order(
                    task,
                    path: "f\(task)",
                    bytes,
                    fenced: task == 2,
                    modificationTime: task == 3 ? nil : 1_000_000 * task
                )
            }
            let before = scratch.modificationTime("\(ScratchSink.parts)/3.1.part")
            for result in await scratch.finalizer.finalize(orders) { #expect(try result.get().isInPlace) }
            for task in 1...count where task != 3 { #expect(scratch.modificationTime("f\(task)") == 1_000_000 * task) }
            #expect(scratch.modificationTime("f3") == before)
        }
    }

    /// A worker died after the move. The file that it put there has the content's time, and a fresh inode gets that time too.
    @Test(arguments: [false, true])
    func aRedoneFileKeepsItsTime(fenced: Bool) async throws {
        try await ScratchSink.with { scratch in
            try scratch.makePart(1, bytes)
            try scratch.setModificationTime(1_700_000_000, of: "\(ScratchSink.parts)/1.1.part")
            #expect(rename(scratch.path + "/\(ScratchSink.parts)/1.1.part", scratch.path + "/f") == 0)
            let order = try scratch.order(1, path: "f", bytes, fenced: fenced, modificationTime: 1_700_000_000)
            #expect(try await scratch.finalizer.finalize(order).isInPlace)
            #expect(scratch.modificationTime("f") == 1_700_000_000)
        }
    }

    @Test func aFileThatWasThereKeepsItsOwnTime() async throws {
        try await ScratchSink.with { scratch in
            try scratch.makePart(1, bytes)
            try scratch.write(bytes, to: "f")
            try scratch.setModificationTime(1_000, of: "f")
            let order = try scratch.order(1, path: "f", bytes, modificationTime: 1_700_000_000)
            #expect(try await scratch.finalizer.finalize(order).isInPlace)
            #expect(scratch.modificationTime("f") == 1_000)
        }
    }

    /// The kept time shows next time that the file is the content, without reading it.
    @Test func aKeptTimeIsRecognisedNextTime() async throws {
        try await ScratchSink.with { scratch in
            try scratch.makePart(1, bytes)
            let order = try scratch.order(1, path: "f", bytes, modificationTime: 1_700_000_000)
            #expect(try await scratch.finalizer.finalize(order).isInPlace)
            let verdict = try await ExistingFile(sink: scratch.sink, pool: scratch.pool).check(
                path: order.path,
                size: 10_000,
                digests: [],
                lastModified: 1_700_000_000
            )
            #expect(verdict == .matches(size: 10_000, digests: []))
        }
    }
}
