import Glibc
import MusterAPI
import MusterCore
import Synchronization
import Testing

@testable import MusterWorker

/// After a crash between any two steps the same order runs again, and judges whatever stands at the path (I8).
@Suite struct FinalizerRedoTests {
    let bytes = ScratchSink.content(10_000)

    @Test(arguments: [false, true])
    func afterTheMoveTheFileIsTakenAsItIs(fenced: Bool) async throws {
        try await ScratchSink.with { scratch in
            try scratch.makePart(1, bytes)
            #expect(rename(scratch.path + "/\(ScratchSink.parts)/1.1.part", scratch.path + "/f") == 0)
            // A zombie has the file open; meanwhile no other file gets its inode number.
            let zombie = try scratch.open("f", O_WRONLY)
            for epoch in [10, 11] as [Int64] {
                let order = try scratch.order(1, epoch: epoch, path: "f", bytes, fenced: fenced)
                #expect(try await scratch.finalizer.finalize(order).isInPlace)
            }
            #expect(try scratch.read("f") == bytes)
            try zombie.write([bytes[0] ^ 0xff], at: 0)
            #expect(try (scratch.read("f") == bytes) == fenced, "what a zombie writes is not in a fenced file")
            #expect(try scratch.partNames() == [])
        }
    }

    @Test(arguments: [false, true])
    func crashBetweenTheTwoNamesOfALinkIsSettled(fenced: Bool) async throws {
        try await ScratchSink.with { scratch in
            try scratch.makePart(1, bytes)
            #expect(link(scratch.path + "/\(ScratchSink.parts)/1.1.part", scratch.path + "/f") == 0)
            let old = scratch.inode("f")
            #expect(
                try await scratch.finalizer.finalize(scratch.order(1, path: "f", bytes, fenced: fenced)).isInPlace
            )
            #expect((scratch.inode("f") == old) == !fenced)
            #expect(try scratch.read("f") == bytes)
            #expect(try scratch.partNames() == [])
        }
    }

    @Test func aHalfMadeCopyIsMadeAgain() async throws {
        try await ScratchSink.with { scratch in
            try scratch.makePart(1, bytes)
            try scratch.write(Array(bytes.prefix(777)), to: "\(ScratchSink.own)/10.copy")
            #expect(
                try await scratch.finalizer.finalize(
                    scratch.order(1, epoch: 10, path: "f", bytes, fenced: true)
                ).isInPlace
            )
            #expect(try scratch.read("f") == bytes)
            #expect(try scratch.partNames() == [] && scratch.ownNames() == [])
        }
    }

    @Test func crashBetweenMovingTheCopyAndDroppingThePartIsSettled() async throws {
        try await ScratchSink.with { scratch in
            try scratch.makePart(1, bytes)
            try scratch.write(bytes, to: "f")
            let first = scratch.inode("f")
            #expect(
                try await scratch.finalizer.finalize(
                    scratch.order(1, epoch: 11, path: "f", bytes, fenced: true)
                ).isInPlace
            )
            #expect(scratch.inode("f") == first)
            #expect(try scratch.partNames() == [])
        }
    }

    // MARK: - The fence

    @Test(arguments: [0, 1, 2])
    func aZombiesLateWriteDoesNotReachTheFinishedFile(moved: Int) async throws {
        try await ScratchSink.with { scratch in
            let zombie = try scratch.sink.part(task: TaskID(1), version: 1)
            try zombie.write(bytes, at: 0)
            // The zombie, or a predecessor, may have moved the part itself, or be in the middle of it.
            let part = scratch.path + "/\(ScratchSink.parts)/1.1.part"
            if moved == 1 { #expect(rename(part, scratch.path + "/f") == 0) }
            if moved == 2 { #expect(link(part, scratch.path + "/f") == 0) }
            #expect(
                try await scratch.finalizer.finalize(scratch.order(1, path: "f", bytes, fenced: true)).isInPlace
            )
            try zombie.write([UInt8](repeating: 0, count: 20_000), at: 0)
            #expect(try scratch.read("f") == bytes)
            #expect(try scratch.partNames() == [])
        }
    }

    @Test func aZombieThatFinalizesLateChangesNothing() async throws {
        try await ScratchSink.with { scratch in
            try scratch.makePart(1, bytes)
            let late = try scratch.order(1, epoch: 10, path: "f", bytes)
            #expect(
                try await scratch.finalizer.finalize(
                    scratch.order(1, epoch: 11, path: "f", bytes, fenced: true)
                ).isInPlace
            )
            let inode = scratch.inode("f")
            #expect(try await scratch.finalizer.finalize(late).isInPlace)
            #expect(scratch.inode("f") == inode)
            #expect(try scratch.read("f") == bytes)
        }
    }

    @Test func manyAtOnceLeaveOneWholeFile() async throws {
        try await ScratchSink.with { scratch in
            for round in 1...20 as ClosedRange<Int64> {
                try scratch.makePart(round, bytes)
                let orders = try (1...6 as ClosedRange<Int64>).map { epoch in
                    try scratch.order(round, epoch: epoch, path: "f\(round)", bytes, fenced: epoch > 1)
                }
                let inPlace = await withTaskGroup(of: Bool.self) { group in
                    for order in orders {
                        group.addTask { (try? await scratch.finalizer.finalize(order))?.isInPlace ?? false }
                    }
                    return await group.reduce(false) { $0 || $1 }
                }
                #expect(inPlace)
                #expect(try scratch.read("f\(round)") == bytes)
            }
        }
    }

    // MARK: - Foreign files

    @Test(arguments: [false, true], [false, true])
    func foreignContentIsNeverOverwritten(fenced: Bool, hasPart: Bool) async throws {
        try await ScratchSink.with { scratch in
            var foreign = bytes
            foreign[5_000] ^= 1
            if hasPart { try scratch.makePart(1, bytes) }
            for content in [[], [1], foreign, bytes + [1]] {
                try scratch.write(content, to: "f")
                let order = try scratch.order(1, path: "f", bytes, fenced: fenced)
                let error = await #expect(throws: StorageError.self) { try await scratch.finalizer.finalize(order) }
                guard case .destinationTaken? = error else {
                    Issue.record("\(String(describing: error))")
                    continue
                }
                #expect(error?.failureKind == .storage && error?.parksSink == false)
                #expect(try scratch.read("f") == content)
                #expect(try scratch.partNames() == (hasPart ? [order.part.string] : []))
            }
        }
    }

    /// The origin sends another content each time, and a predecessor died between its rename and its report. The file's mark names its task.
    @Test(arguments: [ExistingFileRule.verify, .fail, .rename], [false, true])
    func fileOfAPredecessorIsReplacedByTheNextVersion(rule: ExistingFileRule, hasPart: Bool) async throws {
        try await ScratchSink.with { scratch in
            try scratch.makePart(1, ScratchSink.content(10_000, seed: 7))
            let first = try scratch.order(1, path: "f", ScratchSink.content(10_000, seed: 7), ifExists: rule)
            #expect(try await scratch.finalizer.finalize(first).isInPlace)
            if hasPart { try scratch.makePart(1, bytes) }
            let second = try scratch.order(1, epoch: 11, path: "f", bytes, fenced: true, ifExists: rule)
            #expect(try await scratch.finalizer.finalize(second).failure?.kind == .changed)
            #expect(try scratch.read("f") == ScratchSink.content(10_000, seed: 7))
            try scratch.makePart(1, version: 2, bytes)
            let third = try scratch.order(1, version: 2, epoch: 12, path: "f", bytes, ifExists: rule)
            #expect(try await scratch.finalizer.finalize(third).finished?.path == nil)
            #expect(try scratch.read("f") == bytes)
            #expect(try scratch.fileNames() == ["f"] && scratch.partNames() == [])
        }
    }

    @Test(arguments: [false, true])
    func theSameContentIsAdoptedAndThePartDropped(fenced: Bool) async throws {
        try await ScratchSink.with { scratch in
            try scratch.makePart(1, bytes)
            try scratch.write(bytes, to: "f")
            let inode = scratch.inode("f")
            #expect(
                try await scratch.finalizer.finalize(scratch.order(1, path: "f", bytes, fenced: fenced)).isInPlace
            )
            #expect(scratch.inode("f") == inode)
            #expect(try scratch.partNames() == [])
        }
    }

    // MARK: - At the last moment

    /// A watch that does `mischief` once, when every byte has been verified and the last question is asked.
    private func watch(_ mischief: @escaping @Sendable () -> Void) -> FinalizeWatch {
        let size = Int64(bytes.count)
        let verified = Atomic<Int64>(0)
        return FinalizeWatch(
            mayContinue: {
                if verified.compareExchange(expected: size, desired: -1, ordering: .relaxed).exchanged { mischief() }
                return true
            },
            verified: { verified.store($0, ordering: .relaxed) }
        )
    }

    @Test func aPartThatIsReplacedAfterItWasVerifiedIsNotPutInPlace() async throws {
        try await ScratchSink.with { scratch in
            try scratch.makePart(1, bytes)
            let part = scratch.path + "/\(ScratchSink.parts)/1.1.part"
            let watch = watch {
                unlink(part)
                #expect(throws: Never.self) {
                    try scratch.write([UInt8](repeating: 0, count: 10_000), to: "\(ScratchSink.parts)/1.1.part")
                }
            }
            let order = try scratch.order(1, path: "f", bytes)
            let error = await #expect(throws: StorageError.self) {
                try await scratch.finalizer.finalize(order, watch: watch)
            }
            #expect(error?.failureKind == .changed)
            #expect(!scratch.exists("f"))
        }
    }

    @Test(arguments: [false, true])
    func aFileThatIsPutThereMeanwhileIsNotOverwritten(isMoved: Bool) async throws {
        try await ScratchSink.with { scratch in
            try scratch.makePart(1, bytes)
            // The fenced lease would replace only the predecessor's file.
            if isMoved { #expect(rename(scratch.path + "/\(ScratchSink.parts)/1.1.part", scratch.path + "/f") == 0) }
            let watch = watch {
                unlink(scratch.path + "/f")
                #expect(throws: Never.self) { try scratch.write([1, 2, 3], to: "f") }
            }
            let order = try scratch.order(1, path: "f", bytes, fenced: true)
            let error = await #expect(throws: StorageError.self) {
                try await scratch.finalizer.finalize(order, watch: watch)
            }
            guard case .destinationTaken? = error else {
                Issue.record("\(String(describing: error))")
                return
            }
            #expect(try scratch.read("f") == [1, 2, 3])
        }
    }

    @Test func aSinkThatGoesAwayMeanwhileIsNoticed() async throws {
        try await ScratchSink.with { scratch in
            try scratch.makePart(1, bytes)
            let size = Int64(bytes.count)
            let watch = FinalizeWatch(verified: { count in
                if count == size { rename(scratch.path, scratch.path + ".away") }
            })
            let order = try scratch.order(1, path: "f", bytes)
            let error = await #expect(throws: StorageError.self) {
                try await scratch.finalizer.finalize(order, watch: watch)
            }
            #expect(error?.parksSink == true)
            #expect(rename(scratch.path + ".away", scratch.path) == 0)
            #expect(!scratch.exists("f"))
            #expect(try scratch.partNames() == ["1.1.part"])
        }
    }

    @Test func aPipeAtThePathDoesNotBlockTheFinalizer() async throws {
        try await ScratchSink.with { scratch in
            #expect(mkfifo(scratch.path + "/f", 0o644) == 0)
            for hasPart in [false, true] {
                if hasPart { try scratch.makePart(1, bytes) }
                let order = try scratch.order(1, path: "f", bytes)
                await #expect(throws: StorageError.self) { try await scratch.finalizer.finalize(order) }
            }
        }
    }

    @Test(.enabled(if: ScratchMount.isPermitted, "needs the right to mount a tmpfs"))
    func aCopyWithoutRoomIsReportedAsFullAndLeavesNothing() async throws {
        let mount = try ScratchMount(size: "1m")
        try await ScratchSink.with(at: mount.path) { scratch in
            let bytes = ScratchSink.content(700_000)
            try scratch.makePart(1, bytes)
            let order = try scratch.order(1, path: "f", bytes, chunkSize: 100_000, fenced: true)
            let error = await #expect(throws: StorageError.self) { try await scratch.finalizer.finalize(order) }
            #expect(error?.failureKind == .storageFull)
            #expect(try scratch.partNames() == [order.part.string])
            #expect(try scratch.read("\(ScratchSink.parts)/\(order.part.string)") == bytes)
            mount.unmount()
        }
    }
}
