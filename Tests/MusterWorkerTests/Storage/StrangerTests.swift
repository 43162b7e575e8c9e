import Glibc
import MusterCore
import Synchronization
import Testing

@testable import MusterWorker

/// Two databases whose workers share a sink, and both count their tasks from 1 (I18, F21).
@Suite struct StrangerTests {
    private static let other = "aaaaaaaa-8d0e-4a3b-9a0f-6f2f0f6f1c11"
    private static let ours = ScratchSink.content(4_000, seed: 1)
    private static let theirs = ScratchSink.content(4_000, seed: 2)

    private func withStranger(_ body: (ScratchSink, ScratchSink) async throws -> Void) async throws {
        try await ScratchSink.with { scratch in
            let stranger = try ScratchSink(at: scratch.path, session: ScratchSink.session(1, of: Self.other))
            try await body(scratch, stranger)
            await stranger.pool.shutdown()
        }
    }

    /// Puts the other database's file in place at `f`.
    private func finish(_ stranger: ScratchSink) async throws {
        try stranger.makePart(1, Self.theirs)
        let order = try stranger.order(1, path: "f", Self.theirs, installation: Self.other)
        #expect(try await stranger.finalizer.finalize(order).isInPlace)
    }

    private func purge(_ scratch: ScratchSink, _ task: Int64, _ path: String, size: Int64?) throws {
        let owner = FileMark.Owner(installation: ScratchSink.installation, task: TaskID(task))
        let file = PurgeOrder.File(path: try DestinationPath(validating: path), size: size, owner: owner)
        try scratch.sink.purge([PurgeOrder(task: TaskID(task), file: file)])
    }

    @Test func tasksOfOneNumberWriteIntoPartsOfTheirOwn() async throws {
        try await withStranger { scratch, stranger in
            try stranger.makePart(1, Self.theirs)
            try scratch.makePart(1, Self.ours)
            #expect(try await scratch.finalizer.finalize(scratch.order(1, path: "a", Self.ours)).isInPlace)
            #expect(
                try await stranger.finalizer.finalize(
                    stranger.order(1, path: "b", Self.theirs, installation: Self.other)
                )
                .isInPlace)
            #expect(try scratch.read("a") == Self.ours && scratch.read("b") == Self.theirs)
        }
    }

    @Test func aPurgeLeavesTheirPartsAndSessionsAlone() async throws {
        try await withStranger { scratch, stranger in
            try stranger.makePart(1, Self.theirs)
            try scratch.sink.purge(task: TaskID(1))
            try scratch.sink.revoke([SessionID(1), SessionID(2)])
            #expect(try stranger.partNames() == ["1.1.part"])
            try stranger.sink.probe()
        }
    }

    @Test(arguments: [false, true])
    func theirFinishedFileCountsAndStaysAsItIs(isFenced: Bool) async throws {
        try await withStranger { scratch, stranger in
            try await finish(stranger)
            let inode = scratch.inode("f")
            for hasPart in [true, false] {
                if hasPart { try scratch.makePart(1, Self.theirs) }
                let order = try scratch.order(1, path: "f", Self.theirs, fenced: isFenced)
                #expect(try await scratch.finalizer.finalize(order).isInPlace)
            }
            let (file, _) = try scratch.sink.root.file("f", creation: .never)
            let mark = FileMark.read(file, path: try DestinationPath(validating: "f"))
            #expect(mark?.owner.installation == Self.other && mark?.isAdopted == false)
            for size in [nil, Int64(Self.theirs.count)] { try purge(scratch, 1, "f", size: size) }
            #expect(scratch.inode("f") == inode)
        }
    }

    /// The other database may replace its file at any time, and a second name costs nothing.
    @Test(arguments: [false, true])
    func theirFinishedFileDoesNotCountWhereANumberedNameIsWanted(isFenced: Bool) async throws {
        try await withStranger { scratch, stranger in
            try await finish(stranger)
            try scratch.makePart(1, Self.theirs)
            let order = try scratch.order(1, path: "f", Self.theirs, fenced: isFenced, ifExists: .rename)
            #expect(try await scratch.finalizer.finalize(order).isInPlace)
            #expect(try scratch.read("f (2)") == Self.theirs)
        }
    }

    @Test func theirFinishedFileIsNotReplaced() async throws {
        try await withStranger { scratch, stranger in
            try await finish(stranger)
            try scratch.makePart(1, Self.ours)
            let order = try scratch.order(1, path: "f", Self.ours, ifExists: .replace)
            await #expect(throws: StorageError.self) { try await scratch.finalizer.finalize(order) }
            #expect(try scratch.read("f") == Self.theirs)
        }
    }

    /// A worker of the other database put the file there and was killed before it reported that. By now that database has
    /// another content, or a cancel. Our task counts on the file meanwhile.
    @Test func theirFileOnWhichWeCountIsNeitherReplacedNorDeletedByThem() async throws {
        try await withStranger { scratch, stranger in
            try await finish(stranger)
            try scratch.makePart(1, Self.theirs)
            #expect(try await scratch.finalizer.finalize(scratch.order(1, path: "f", Self.theirs)).isInPlace)
            try stranger.makePart(1, version: 2, Self.ours)
            let next = try stranger.order(1, version: 2, epoch: 11, path: "f", Self.ours, installation: Self.other)
            await #expect(throws: StorageError.self) { try await stranger.finalizer.finalize(next) }
            let owner = FileMark.Owner(installation: Self.other, task: TaskID(1))
            let file = PurgeOrder.File(path: try DestinationPath(validating: "f"), size: nil, owner: owner)
            try stranger.sink.purge([PurgeOrder(task: TaskID(1), version: 2, file: file)])
            #expect(try scratch.read("f") == Self.theirs)
        }
    }

    /// Our task counts on the file at any moment while the other worker replaces it. Either our task finds that the file is gone, or the file stays.
    @Test func theirFileStaysFromTheMomentOnAtWhichWeCountOnIt() async throws {
        let attribute = FileMark.attribute(of: try DestinationPath(validating: "f")) + ".counted"
        var stayed = 0
        for moment in 1...12 {
            try await withStranger { scratch, stranger in
                try await finish(stranger)
                let (file, _) = try scratch.sink.root.file("f", creation: .never)
                let inode = scratch.inode("f")
                let calls = Atomic(0)
                let stands = Atomic(false)
                let watch = FinalizeWatch(mayContinue: {
                    if calls.add(1, ordering: .sequentiallyConsistent).newValue == moment {
                        try? file.setAttribute(attribute, to: Array(ScratchSink.installation.utf8))
                        stands.store(scratch.inode("f") == inode, ordering: .sequentiallyConsistent)
                    }
                    return true
                })
                try stranger.makePart(1, version: 2, Self.ours)
                let next = try stranger.order(1, version: 2, epoch: 11, path: "f", Self.ours, installation: Self.other)
                _ = try? await stranger.finalizer.finalize(next, watch: watch)
                let isCounted = stands.load(ordering: .sequentiallyConsistent)
                #expect(try scratch.read("f") == (isCounted ? Self.theirs : Self.ours), "moment \(moment)")
                if isCounted { stayed += 1 }
            }
        }
        #expect(stayed >= 2, "some moments are before the exchange")
    }

    @Test(arguments: ["", "..", "../x", "3F0C6A52-8D0E-4A3B-9A0F-6F2F0F6F1C11", "3f0c6a52-8d0e-4a3b-9a0f-6f2f0f6f1c1/"])
    func invalidInstallationBecomesNoName(text: String) {
        #expect(SinkSession(installation: text, session: SessionID(1)) == nil)
    }
}
