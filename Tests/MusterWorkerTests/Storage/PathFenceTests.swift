import Glibc
import MusterAPI
import MusterCore
import Synchronization
import Testing

@testable import MusterWorker

/// A session that was stopped goes on after another task has taken over the path (adr/0017, I17). The tests take each step
/// explicitly, in the order that would lose a file, and do not wait for time to pass.
@Suite struct PathFenceTests {
    private static let old = ScratchSink.content(5_000, seed: 1)
    private static let new = ScratchSink.content(5_000, seed: 2)

    /// Two sessions in one sink: the first one's worker is stopped and goes on, the second one's takes over meanwhile.
    private func withTwo(_ body: (ScratchSink, SinkDirectory) async throws -> Void) async throws {
        try await ScratchSink.with { first in
            try await body(first, ScratchSink.begin(ScratchSink.session(2), at: first.path))
        }
    }

    private func place(_ order: FinalizeOrder, in sink: SinkDirectory) throws(StorageError) -> FinalizeOutcome {
        var placement = try Placement(sink: sink, watch: FinalizeWatch(), isSynchronized: false)
        return try placement.carryOut(order)
    }

    /// Does what the next task's lease asks for: revokes the dead session, deletes what is left of its task, and puts the new file in place.
    private func takeOver(_ scratch: ScratchSink, _ second: SinkDirectory) throws {
        try second.revoke([SessionID(1)])
        try second.purge([purge(1, size: nil)])
        try second.part(task: TaskID(2), version: 1).write(Self.new, at: 0)
        let order = try scratch.order(2, path: "f", Self.new, ifExists: .replace)
        #expect(try place(order, in: second).isInPlace)
    }

    private func purge(_ task: Int64, size: Int64?) throws -> PurgeOrder {
        let owner = FileMark.Owner(installation: ScratchSink.installation, task: TaskID(task))
        let path = try DestinationPath(validating: "f")
        return PurgeOrder(task: TaskID(task), version: 1, file: .init(path: path, size: size, owner: owner))
    }

    /// Where the first session's worker is stopped, after all bytes were verified and directly before a step that can't be taken back.
    enum Stop: CaseIterable, Sendable {
        /// The file is still among the parts.
        case beforeItIsTakenFromTheParts
        /// The file is in the session's directory, and only the rename over the path is left.
        case beforeItIsPutInPlace
    }

    @Test(arguments: Stop.allCases)
    func aWorkerThatGoesOnLateDoesNotReplaceTheFileOfTheNextTask(stop: Stop) async throws {
        try await withTwo { scratch, second in
            try scratch.write([1, 2, 3], to: "f")
            try scratch.makePart(1, Self.old)
            let order = try scratch.order(1, path: "f", Self.old, ifExists: .replace)
            let size = Int64(Self.old.count)
            let verified = Atomic<Int64>(0)
            let isOver = Atomic<Bool>(false)
            let watch = FinalizeWatch(
                mayContinue: {
                    guard verified.load(ordering: .relaxed) == size, !isOver.load(ordering: .relaxed) else {
                        return true
                    }
                    let isInHand = (try? scratch.ownNames()) == ["1.1.part"]
                    guard isInHand == (stop == .beforeItIsPutInPlace) else { return true }
                    isOver.store(true, ordering: .relaxed)
                    #expect(throws: Never.self) { try takeOver(scratch, second) }
                    return true
                },
                verified: { verified.store($0, ordering: .relaxed) }
            )
            let error = await #expect(throws: StorageError.self) {
                try await scratch.finalizer.finalize(order, watch: watch)
            }
            if stop == .beforeItIsPutInPlace { #expect(error?.parksSink == true, "\(String(describing: error))") }
            let wasStopped = isOver.load(ordering: .relaxed)
            #expect(wasStopped)
            #expect(try scratch.read("f") == Self.new)
            // Later purges for the first task do not reach the file of the second task.
            try second.purge([purge(1, size: nil), purge(1, size: size)])
            #expect(try scratch.read("f") == Self.new)
            #expect(try scratch.partNames() == [] && second.own.names() == [])
        }
    }

    /// Without marks a purge goes by the size, and the next task's file may have the same size.
    @Test func aPurgeThatGoesOnLateDoesNotDeleteTheFileOfTheNextTask() async throws {
        try await withTwo { scratch, second in
            try second.revoke([SessionID(1)])
            try second.part(task: TaskID(2), version: 1).write(Self.new, at: 0)
            let order = try scratch.order(2, path: "f", Self.new, installation: nil)
            #expect(try place(order, in: second).isInPlace)
            #expect(throws: StorageError.self) {
                try scratch.sink.purge([purge(1, size: Int64(Self.new.count))])
            }
            #expect(try scratch.read("f") == Self.new)
        }
    }

    /// The task was cancelled and its leftovers were deleted before the stopped worker starts on its lease (I13).
    @Test func aSessionThatWasRevokedMakesNoPart() async throws {
        try await withTwo { scratch, second in
            try second.revoke([SessionID(1)])
            try second.purge([purge(1, size: nil)])
            let error = #expect(throws: StorageError.self) { try scratch.sink.part(task: TaskID(1), version: 1) }
            #expect(error?.parksSink == true, "\(String(describing: error))")
            #expect(try scratch.partNames() == [])
        }
    }

    @Test func partsAreMadeOnceHoweverManyAskForThem() async throws {
        try await withTwo { scratch, second in
            let sinks = [scratch.sink, second]
            for task in 1...200 {
                let parts = try await withThrowingTaskGroup(of: PartFile.self) { group in
                    for sink in sinks { group.addTask { try sink.part(task: TaskID(Int64(task)), version: 1) } }
                    return try await group.reduce(into: []) { $0.append($1) }
                }
                #expect(Set(parts.map(\.identity)).count == 1)
            }
            #expect(try scratch.partNames().count == 200)
            #expect(try scratch.ownNames() == [] && second.own.names() == [])
        }
    }

    @Test func partsThatARevokedSessionHadInHandGoBack() async throws {
        try await withTwo { scratch, second in
            try scratch.makePart(1, Self.old)
            try scratch.sink.parts.move("1.1.part", to: "1.1.part", in: scratch.sink.own, .exclusive)
            for name in ["5.1.removed", ".nfs0001", "7.copy", "1.new"] {
                try scratch.write([1], to: "\(ScratchSink.own)/\(name)")
            }
            // Another program's, which must not keep the session's directory from going.
            try #require(mkdir("\(scratch.path)/\(ScratchSink.own)/copy", 0o755) == 0)
            try second.revoke([SessionID(1)])
            #expect(try scratch.partNames() == ["1.1.part", "1.copy", "5.1.removed"])
            #expect(!scratch.exists(".muster/\(ScratchSink.installation)/1"))
            #expect(try place(scratch.order(1, path: "f", Self.old), in: second).isInPlace, "nothing was lost")
        }
    }

    @Test func revokingIsRepeatedAndSkipsWhatNeverBegan() async throws {
        try await withTwo { scratch, second in
            for _ in 0..<2 { try second.revoke([SessionID(1), SessionID(77), SessionID(2)]) }
            let third = try ScratchSink.begin(ScratchSink.session(3), at: scratch.path)
            try third.revoke([SessionID(1)])
            #expect(throws: StorageError.self) { try scratch.sink.probe() }
            try second.probe()
        }
    }

    /// Somebody tidied below `.muster`: the session's directory was moved away, and can't be entered any more.
    @Test(arguments: ["a file", "a link"])
    func somethingElseInThePlaceOfASessionsDirectoryHoldsUpNothing(what: String) async throws {
        try await withTwo { scratch, second in
            let directory = scratch.path + "/\(ScratchSink.own)"
            try #require(rename(directory, scratch.path + "/aside") == 0)
            if what == "a file" {
                try scratch.write([1], to: ScratchSink.own)
            } else {
                try #require(symlink(scratch.path + "/aside", directory) == 0)
            }
            try second.revoke([scratch.sink.session.session])
            try second.part(task: TaskID(1), version: 1).write(Self.new, at: 0)
            #expect(scratch.exists("aside"))
        }
    }

    @Test func aSessionThatEndsLeavesNothingToRevoke() async throws {
        try await ScratchSink.with { scratch in
            try scratch.makePart(1, Self.old)
            try scratch.sink.parts.move("1.1.part", to: "1.1.part", in: scratch.sink.own, .exclusive)
            try scratch.sink.end()
            #expect(try scratch.sink.home.names().sorted() == ["parts", "spare"])
            #expect(try scratch.partNames() == ["1.1.part"])
            let order = try scratch.order(1, path: "f", Self.old)
            await #expect(throws: StorageError.self) { try await scratch.finalizer.finalize(order) }
            #expect(!scratch.exists("f"))
        }
    }

    /// A part that could not be put in place is back where the next try looks for it.
    @Test func afterARefusalThePartIsAmongThePartsAgain() async throws {
        try await ScratchSink.with { scratch in
            try scratch.write([1, 2, 3], to: "f")
            try scratch.makePart(1, Self.old)
            let order = try scratch.order(1, path: "f", Self.old)
            await #expect(throws: StorageError.self) { try await scratch.finalizer.finalize(order) }
            #expect(try scratch.partNames() == ["1.1.part"] && scratch.ownNames() == [])
            // As if a try could not even move it back.
            try scratch.sink.parts.move("1.1.part", to: "1.1.part", in: scratch.sink.own, .exclusive)
            #expect(unlink(scratch.path + "/f") == 0)
            #expect(try await scratch.finalizer.finalize(order).isInPlace)
        }
    }
}
