import Glibc
import MusterCore
import Testing

@testable import MusterWorker

@Suite struct DurableSyncTests {
    @Test(arguments: [1, 3, 40])
    func everyRequestIsAnswered(files: Int) async throws {
        try await ScratchSink.with { scratch in
            try await withThrowingTaskGroup(of: Void.self) { group in
                for task in 1...files {
                    let part = try scratch.sink.part(task: TaskID(Int64(task)), version: 1)
                    try part.write([1, 2, 3], at: 0)
                    for _ in 0..<5 { group.addTask { try await scratch.sync.makeDurable(part) } }
                    group.addTask { try await scratch.sync.makeDurable([scratch.sink.root, scratch.sink.parts]) }
                }
                try await group.waitForAll()
            }
            try await scratch.sync.makeEverythingDurable()
        }
    }

    @Test func oneLostPartDoesNotFailItsBatch() async throws {
        try await ScratchSink.with { scratch in
            let parts = try (1...20).map { try scratch.sink.part(task: TaskID($0), version: 1) }
            for part in parts { try part.write([1], at: 0) }
            _ = try scratch.sink.parts.remove("7.1.part")
            let failed = await withTaskGroup(of: Int64?.self) { group in
                for part in parts {
                    group.addTask {
                        do {
                            try await scratch.sync.makeDurable(part)
                            return nil
                        } catch {
                            return part.name.task.rawValue
                        }
                    }
                }
                return await group.reduce(into: [Int64]()) { if let task = $1 { $0.append(task) } }
            }
            #expect(failed == [7])
        }
    }

    /// The kernel tells once that it could not write something, and not to which file that belongs (I4).
    @Test func aFailedSyncOfTheFileSystemFailsEveryOpenPartForGood() async throws {
        try await ScratchSink.with { scratch in
            let syncs = CallCount()
            let kernel = FaultyKernel { (extent, _) throws(SystemError) in
                if extent == .everything, syncs.add() == 0 { throw SystemError(EIO) }
            }
            let sink = try scratch.begin(2, on: kernel)
            let sync = DurableSync(sink: sink, pool: scratch.pool)
            let parts = try (1...3).map { try sink.part(task: TaskID($0), version: 1) }
            for part in parts { try part.write([1], at: 0) }
            await #expect(throws: StorageError.self) { try await sync.makeEverythingDurable() }
            for part in parts { await #expect(throws: StorageError.self) { try await sync.makeDurable(part) } }
            try await sync.makeEverythingDurable()
            #expect(syncs.value == 2)
            for part in parts { await #expect(throws: StorageError.self) { try await sync.makeDurable(part) } }
        }
    }

    @Test func requestsAfterShutdownFailInsteadOfHanging() async throws {
        let scratch = try ScratchSink()
        let part = try scratch.sink.part(task: TaskID(1), version: 1)
        await scratch.close()
        await #expect(throws: StorageError.self) { try await scratch.sync.makeDurable(part) }
    }
}
