import Glibc
import MusterAPI
import MusterCore
import Testing

@testable import MusterWorker

/// A worker may die anywhere between the first copy and its report; the next worker goes on from what is left. In the end
/// one file stands, the earlier file stays unless it was to be replaced, and the redone order reports the same path (I8).
@Suite struct ExistingFileRuleRedoTests {
    let bytes = ScratchSink.content(10_000)
    let foreign = ScratchSink.content(10_000, seed: 7)

    /// The state that a dead worker left.
    enum Crash: String, CaseIterable, Sendable {
        /// Before anything was put in place.
        case beforeTheMove
        /// The same, in the middle of the copy.
        case inTheMiddleOfTheCopy
        /// The part has its new name, and the old one is gone.
        case afterTheMove
        /// The part has both names, on a file system that can't move exclusively.
        case betweenTwoNames
        /// The whole file was one lease, and the next worker fetched it again.
        case afterTheMoveAndFetchedAgain
        /// The copy of a fenced part is in place, the part still there.
        case afterTheMoveOfTheCopy
        /// The copy is in place, and the part's own inode, which was there before, has the copy's old name.
        case afterTheExchange

        /// Whether it can happen only after a lease was lost.
        var isFenced: Bool {
            switch self {
            case .beforeTheMove, .betweenTwoNames, .afterTheMove: false
            case .inTheMiddleOfTheCopy, .afterTheMoveAndFetchedAgain, .afterTheMoveOfTheCopy, .afterTheExchange: true
            }
        }
    }

    /// Leaves the sink as that crash would, the file being at `name`.
    private func leave(_ crash: Crash, at name: String, in scratch: ScratchSink) throws {
        let part = scratch.path + "/\(ScratchSink.parts)/1.1.part"
        let file = scratch.path + "/" + name
        try scratch.makePart(1, bytes)
        switch crash {
        case .beforeTheMove: break
        case .inTheMiddleOfTheCopy: try scratch.write(Array(bytes.prefix(99)), to: "\(ScratchSink.own)/10.copy")
        case .afterTheMove: #expect(rename(part, file) == 0)
        case .betweenTwoNames:
            unlink(file)
            #expect(link(part, file) == 0)
        case .afterTheMoveAndFetchedAgain:
            #expect(rename(part, file) == 0)
            try scratch.makePart(1, bytes)
        case .afterTheMoveOfTheCopy:
            try scratch.write(bytes, to: "\(ScratchSink.own)/9.copy")
            #expect(rename(scratch.path + "/\(ScratchSink.own)/9.copy", file) == 0)
        case .afterTheExchange:
            #expect(rename(part, scratch.path + "/\(ScratchSink.own)/10.copy") == 0)
            unlink(file)
            try scratch.write(bytes, to: name)
        }
    }

    private func redo(_ order: FinalizeOrder, expecting path: String, in scratch: ScratchSink) async throws {
        // Twice, since the worker that redoes the order may die as well.
        for epoch in [10, 11] as [Int64] {
            var order = order
            order.epoch = LeaseEpoch(epoch)
            let finished = try await scratch.finalizer.finalize(order).finished
            #expect(finished != nil && finished?.path == (path == "f.x" ? nil : path))
            #expect(try scratch.read(path) == bytes)
            #expect(try scratch.partNames() == [])
        }
    }

    @Test(arguments: Crash.allCases, [false, true])
    func replaceIsRedone(crash: Crash, fenced: Bool) async throws {
        guard fenced || !crash.isFenced else { return }
        try await ScratchSink.with { scratch in
            try scratch.write(foreign, to: "f.x")
            try leave(crash, at: "f.x", in: scratch)
            // Open, so that no other file gets its inode number.
            let zombie = open(scratch.path + "/f.x", O_RDONLY)
            defer { close(zombie) }
            let placed = scratch.inode("f.x")
            let order = try scratch.order(1, path: "f.x", bytes, fenced: fenced, ifExists: .replace)
            try await redo(order, expecting: "f.x", in: scratch)
            #expect(try scratch.fileNames() == ["f.x"])
            if fenced, [.afterTheMove, .betweenTwoNames].contains(crash) {
                #expect(scratch.inode("f.x") != placed, "a zombie may have the part's inode open")
            }
        }
    }

    @Test(arguments: Crash.allCases, [false, true])
    func renameIsRedoneWithoutASecondCopy(crash: Crash, fenced: Bool) async throws {
        guard fenced || !crash.isFenced else { return }
        try await ScratchSink.with { scratch in
            try scratch.write(foreign, to: "f.x")
            try scratch.write(foreign, to: "f (2).x")
            try leave(crash, at: "f (3).x", in: scratch)
            // Open, so that no other file gets its inode number.
            let zombie = open(scratch.path + "/f (3).x", O_RDONLY)
            defer { close(zombie) }
            let placed = scratch.inode("f (3).x")
            let order = try scratch.order(1, path: "f.x", bytes, fenced: fenced, ifExists: .rename)
            try await redo(order, expecting: "f (3).x", in: scratch)
            #expect(try scratch.fileNames() == ["f (2).x", "f (3).x", "f.x"])
            #expect(try scratch.read("f.x") == foreign)
            #expect(try scratch.read("f (2).x") == foreign)
            if fenced, [.afterTheMove, .betweenTwoNames].contains(crash) {
                #expect(scratch.inode("f (3).x") != placed, "a zombie may have the part's inode open")
            }
        }
    }

    @Test(arguments: Crash.allCases, [false, true])
    func renameIsRedoneWhereAnEarlierNameBecameFree(crash: Crash, fenced: Bool) async throws {
        guard ![.beforeTheMove, .inTheMiddleOfTheCopy].contains(crash), fenced || !crash.isFenced else { return }
        try await ScratchSink.with { scratch in
            try leave(crash, at: "f (3).x", in: scratch)
            let order = try scratch.order(1, path: "f.x", bytes, fenced: fenced, ifExists: .rename)
            try await redo(order, expecting: "f (3).x", in: scratch)
            #expect(try scratch.fileNames() == ["f (3).x"])
        }
    }

    @Test(arguments: Crash.allCases, [false, true])
    func failRecognizesItsOwnFile(crash: Crash, fenced: Bool) async throws {
        guard fenced || !crash.isFenced else { return }
        try await ScratchSink.with { scratch in
            try leave(crash, at: "f.x", in: scratch)
            let order = try scratch.order(1, path: "f.x", bytes, fenced: fenced, ifExists: .fail)
            try await redo(order, expecting: "f.x", in: scratch)
            #expect(try scratch.fileNames() == ["f.x"])
        }
    }

    @Test(arguments: [false, true])
    func aRenamedFileThatIsGoneIsFetchedAgain(fenced: Bool) async throws {
        try await ScratchSink.with { scratch in
            try scratch.write(foreign, to: "f.x")
            try scratch.write(foreign, to: "f (2).x")
            let order = try scratch.order(1, path: "f.x", bytes, fenced: fenced, ifExists: .rename)
            let error = await #expect(throws: StorageError.self) { try await scratch.finalizer.finalize(order) }
            #expect(error?.failureKind == .changed)
            #expect(try scratch.fileNames() == ["f (2).x", "f.x"])
        }
    }

    @Test(arguments: [ExistingFileRule.replace, .rename])
    func manyAtOnceLeaveOneWholeFile(rule: ExistingFileRule) async throws {
        try await ScratchSink.with { scratch in
            for round in 1...20 as ClosedRange<Int64> {
                try scratch.makePart(round, bytes)
                try scratch.write(foreign, to: "f\(round)")
                let orders = try (1...6 as ClosedRange<Int64>).map { epoch in
                    try scratch.order(
                        round,
                        epoch: epoch,
                        path: "f\(round)",
                        bytes,
                        fenced: epoch > 1,
                        ifExists: rule
                    )
                }
                let inPlace = await withTaskGroup(of: Bool.self) { group in
                    for order in orders {
                        group.addTask { (try? await scratch.finalizer.finalize(order))?.isInPlace ?? false }
                    }
                    return await group.reduce(false) { $0 || $1 }
                }
                #expect(inPlace)
                let names = try scratch.fileNames().filter { $0 == "f\(round)" || $0.hasPrefix("f\(round) ") }
                #expect(names == (rule == .replace ? ["f\(round)"] : ["f\(round)", "f\(round) (2)"]))
                #expect(try scratch.read(rule == .replace ? "f\(round)" : "f\(round) (2)") == bytes)
            }
        }
    }

    /// A zombie was stopped directly before its rename, and woke up when the fenced copy stood already.
    @Test func aPartThatAZombiePutOverTheCopyIsRenewed() async throws {
        try await ScratchSink.with { scratch in
            let zombie = try scratch.sink.part(task: TaskID(1), version: 1)
            try zombie.write(bytes, at: 0)
            let order = try scratch.order(1, path: "f", bytes, fenced: true, ifExists: .replace)
            try scratch.write(bytes, to: "copy")
            let copy = try #require(try scratch.sink.root.status(of: "copy"))
            // The copy was moved to the path, and then the zombie's rename came.
            #expect(rename(scratch.path + "/\(ScratchSink.parts)/1.1.part", scratch.path + "/f") == 0)
            let watch = FinalizeWatch()
            let check = try #require(ContentCheck(order, watch: watch))
            var placement = try Placement(sink: scratch.sink, watch: watch, isSynchronized: false)
            let place = try #require(try placement.walk.place(of: order.path, making: false))
            let outcome = try placement.conclude(
                Placement.Candidate(name: order.copy, identity: copy.identity, part: zombie.identity, digests: []),
                at: Placement.Spot(path: order.path, place: place),
                order,
                check
            )
            #expect(outcome.isInPlace)
            try zombie.write([UInt8](repeating: 0, count: 20_000), at: 0)
            #expect(try scratch.read("f") == bytes)
            #expect(try scratch.partNames() == [])
        }
    }
}
