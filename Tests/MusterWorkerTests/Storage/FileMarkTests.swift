import Foundation
import Glibc
import MusterAPI
import MusterCore
import Testing

@testable import MusterWorker

/// Which task owns a file, and how that decides what a purge deletes (adr/0014, I13).
@Suite struct FileMarkTests {
    private static let bytes = ScratchSink.content(2_500)

    private func mark(_ task: Int64, version: Int32 = 1, isAdopted: Bool = false) -> FileMark {
        FileMark(owner: Self.owner(task), version: version, isAdopted: isAdopted)
    }

    private static func owner(_ task: Int64, _ installation: String = ScratchSink.installation) -> FileMark.Owner {
        FileMark.Owner(installation: installation, task: TaskID(task))
    }

    private func found(_ name: String, under path: String? = nil, in scratch: ScratchSink) throws -> FileMark? {
        let (file, _) = try scratch.sink.root.file(name, creation: .never)
        var mark = FileMark.read(file, path: try DestinationPath(validating: path ?? name))
        mark?.state = nil
        return mark
    }

    /// Writes to a file that is there, as `cp` and an editor do: it stays the same inode, with the same mark.
    private func edit(_ name: String, _ bytes: [UInt8], in scratch: ScratchSink) throws {
        let file = try FileHandle(forWritingTo: URL(filePath: scratch.path + "/" + name))
        try file.truncate(atOffset: 0)
        try file.write(contentsOf: Data(bytes))
        try file.close()
        // The clock of file systems has steps of some milliseconds.
        try scratch.setModificationTime(2_000_000_000, of: name)
    }

    private func write(_ mark: FileMark, on name: String, under path: String? = nil, in scratch: ScratchSink) throws {
        let (file, _) = try scratch.sink.root.file(name, creation: .never)
        try #require(mark.write(to: file, path: try DestinationPath(validating: path ?? name)))
    }

    private func purge(
        _ task: Int64,
        version: Int32 = 1,
        path: String = "a",
        size: Int64? = nil,
        installation: String = ScratchSink.installation,
        in scratch: ScratchSink
    ) throws {
        let path = try DestinationPath(validating: path)
        let file = PurgeOrder.File(path: path, size: size, owner: Self.owner(task, installation))
        try scratch.sink.purge([PurgeOrder(task: TaskID(task), version: version, file: file)])
    }

    @Test func marksAreReadAsTheyAreWritten() {
        let known = Representation(etag: "\"a/b\"", lastModified: "Wed, 01 Jan 2020 00:00:00 GMT")
        let described = FileMark(owner: Self.owner(8), version: 1, representation: known)
        #expect(described.validators.isEmpty == false && mark(8).validators.isEmpty)
        for mark in [mark(7), mark(.max, version: 12, isAdopted: true), described] {
            let state = FileMark.State(size: 9, modified: 1_700_000_000_123_456_789)
            var read = FileMark(mark.text(state))
            #expect(read?.state == state)
            read?.state = nil
            #expect(read == mark)
        }
        for text in [
            "", "a/1", "a/x/1/1/1/", "a/1/1/1/1", "a/1/1/1/1//other", "a/1/1/1/1//adopted/", "a/1/1", "a/1/1/x/1/",
            "a/1/1/1/x/",
        ] {
            #expect(FileMark(text) == nil, "\(text)")
        }
    }

    @Test(arguments: [false, true])
    func fileThatWasPutInPlaceGoesWithItsTask(isFenced: Bool) async throws {
        try await ScratchSink.with { scratch in
            try scratch.makePart(1, Self.bytes)
            let order = try scratch.order(1, path: "a", Self.bytes, fenced: isFenced)
            #expect(try await scratch.finalizer.finalize(order).isInPlace)
            #expect(try found("a", in: scratch) == mark(1))
            try purge(1, in: scratch)
            #expect(try scratch.fileNames() == [] && scratch.partNames() == [])
        }
    }

    /// The file that was replaced can't come back, so a cancel does not leave the path empty.
    @Test(arguments: [false, true])
    func fileThatReplacedAnotherStaysWithoutItsTask(isFenced: Bool) async throws {
        try await ScratchSink.with { scratch in
            let others = ScratchSink.content(900, seed: 7)
            try scratch.write(others, to: "a")
            try write(mark(2), on: "a", in: scratch)
            try scratch.makePart(1, Self.bytes)
            let order = try scratch.order(1, path: "a", Self.bytes, fenced: isFenced, ifExists: .replace)
            #expect(try await scratch.finalizer.finalize(order).isInPlace)
            #expect(try found("a", in: scratch) == mark(1, isAdopted: true))
            for task in [1, 2] as [Int64] { try purge(task, in: scratch) }
            #expect(try scratch.read("a") == Self.bytes)
            // Nothing was replaced at this path, so the file goes with its task.
            try scratch.makePart(3, Self.bytes)
            let free = try scratch.order(3, path: "b", Self.bytes, fenced: isFenced, ifExists: .replace)
            #expect(try await scratch.finalizer.finalize(free).isInPlace)
            try purge(3, path: "b", in: scratch)
            #expect(!scratch.exists("b"))
            // A request to delete the file deletes it.
            try purge(1, size: Int64(Self.bytes.count), in: scratch)
            #expect(!scratch.exists("a"))
        }
    }

    @Test func fileThatIsNotTheTasksStays() async throws {
        try await ScratchSink.with { scratch in
            try scratch.write(Self.bytes, to: "a")
            try purge(1, in: scratch)
            #expect(scratch.exists("a"))
            let marks = [mark(2), mark(1, version: 2), mark(1, isAdopted: true)]
            for mark in marks {
                try write(mark, on: "a", in: scratch)
                try purge(1, in: scratch)
                #expect(scratch.exists("a"), "\(mark)")
            }
            try write(mark(1), on: "a", in: scratch)
            try purge(1, installation: "another", in: scratch)
            #expect(scratch.exists("a"))
            try purge(1, in: scratch)
            #expect(!scratch.exists("a"))
        }
    }

    /// A file whose deletion is requested is known by its size if it has no mark, and stays if it has the mark of another task.
    @Test func finishedFilesAreDeletedUnlessAnotherTaskOwnsThem() async throws {
        try await ScratchSink.with { scratch in
            let size = Int64(Self.bytes.count)
            try scratch.write(Self.bytes, to: "a")
            try purge(1, size: size + 1, in: scratch)
            #expect(scratch.exists("a"))
            try purge(1, size: size, in: scratch)
            #expect(!scratch.exists("a"))
            for (mark, stays) in [(mark(2), true), (mark(1, isAdopted: true), false), (mark(1, version: 3), false)] {
                try scratch.write(Self.bytes, to: "a")
                try write(mark, on: "a", in: scratch)
                try purge(1, size: size, in: scratch)
                #expect(scratch.exists("a") == stays, "\(mark)")
            }
        }
    }

    @Test func numberedNamesAreLookedAtToo() async throws {
        try await ScratchSink.with { scratch in
            try scratch.write([1, 2, 3], to: "a")
            try scratch.write(Self.bytes, to: "a (2)")
            try scratch.makePart(1, Self.bytes)
            let order = try scratch.order(1, path: "a", [9] + Self.bytes.dropFirst(), ifExists: .rename)
            try scratch.makePart(1, [9] + Self.bytes.dropFirst())
            let finished = try await scratch.finalizer.finalize(order).finished
            #expect(finished?.path == "a (3)")
            try purge(1, in: scratch)
            #expect(try scratch.fileNames() == ["a", "a (2)"])
        }
    }

    /// A numbered name is the file of another task, although its mark is under the path that both asked for.
    @Test(arguments: [nil, Int64(bytes.count)])
    func fileMadeOfANumberedOneGoesAlone(size: Int64?) async throws {
        try await ScratchSink.with { scratch in
            try scratch.write([1, 2, 3], to: "a")
            try scratch.makePart(1, Self.bytes)
            let first = try scratch.order(1, path: "a", Self.bytes, ifExists: .rename)
            #expect(try await scratch.finalizer.finalize(first).finished?.path == "a (2)")
            let second = try scratch.order(
                2, path: "a", Self.bytes, ifExists: .replace, held: try DestinationPath(validating: "a (2)"))
            #expect(try await scratch.finalizer.finalize(second).isInPlace)
            #expect(try scratch.read("a") == Self.bytes)
            #expect(try found("a (2)", under: "a", in: scratch) == mark(1))
            try purge(2, size: size, in: scratch)
            #expect(try scratch.read("a (2)") == Self.bytes)
            // The file that was replaced can't come back, so this file stays unless its deletion is requested.
            #expect(scratch.exists("a") == (size == nil))
        }
    }

    /// Two tasks with the rule `rename` never share a name, whether the second file is fetched or made of the first.
    @Test(arguments: [false, true], ["a (2)", "other", nil])
    func numberedNameOfAnotherTaskIsNotTaken(fenced: Bool, held: String?) async throws {
        try await ScratchSink.with { scratch in
            try scratch.write([1, 2, 3], to: "a")
            try scratch.write(Self.bytes, to: "other")
            try scratch.makePart(1, Self.bytes)
            // With `other`, the first file has the inode of that file.
            let first = try scratch.order(
                1, path: "a", Self.bytes, ifExists: .rename,
                held: held == "other" ? try DestinationPath(validating: "other") : nil)
            #expect(try await scratch.finalizer.finalize(first).finished?.path == "a (2)")
            if held == nil { try scratch.makePart(2, Self.bytes) }
            let second = try scratch.order(
                2, path: "a", Self.bytes, fenced: fenced, ifExists: .rename,
                held: try held.map { try DestinationPath(validating: $0) })
            #expect(try await scratch.finalizer.finalize(second).finished?.path == "a (3)")
            try purge(2, path: "a (3)", size: Int64(Self.bytes.count), in: scratch)
            try purge(2, in: scratch)
            #expect(try scratch.fileNames() == ["a", "a (2)", "other"])
            try purge(1, path: "a (2)", size: Int64(Self.bytes.count), in: scratch)
            #expect(try scratch.fileNames() == ["a", "other"])
        }
    }

    /// Another task that asks for the same file adopts the file of a cancelled task. The end of neither task deletes it.
    @Test func adoptedFilesStayWhicheverTaskIsCancelled() async throws {
        try await ScratchSink.with { scratch in
            try scratch.makePart(1, Self.bytes)
            #expect(try await scratch.finalizer.finalize(try scratch.order(1, path: "a", Self.bytes)).isInPlace)
            try scratch.makePart(2, Self.bytes)
            #expect(try await scratch.finalizer.finalize(try scratch.order(2, path: "a", Self.bytes)).isInPlace)
            #expect(try found("a", in: scratch) == mark(2, isAdopted: true))
            try purge(1, in: scratch)
            try purge(2, in: scratch)
            #expect(scratch.exists("a"))
            try purge(1, size: Int64(Self.bytes.count), in: scratch)
            #expect(scratch.exists("a"))
            try purge(2, size: Int64(Self.bytes.count), in: scratch)
            #expect(!scratch.exists("a"))
        }
    }

    /// A task that takes up its own file again after a crash does not adopt it.
    @Test(arguments: [false, true])
    func fileThatATaskPutThereStaysItsOwn(isFenced: Bool) async throws {
        try await ScratchSink.with { scratch in
            try scratch.makePart(1, Self.bytes)
            #expect(try await scratch.finalizer.finalize(try scratch.order(1, path: "a", Self.bytes)).isInPlace)
            let again = try scratch.order(1, epoch: 11, path: "a", Self.bytes, fenced: isFenced)
            #expect(try await scratch.finalizer.finalize(again).isInPlace)
            #expect(try found("a", in: scratch) == mark(1))
        }
    }

    @Test func fileThatStoodThereBeforeTheFetchIsAdopted() async throws {
        try await ScratchSink.with { scratch in
            try scratch.write(Self.bytes, to: "a")
            try scratch.setModificationTime(1_000_000, of: "a")
            let verdict = try await ExistingFile(sink: scratch.sink, pool: scratch.pool).check(
                path: try DestinationPath(validating: "a"), size: Int64(Self.bytes.count), digests: [],
                lastModified: 1_000_000, mark: mark(1))
            #expect(verdict == .matches(size: Int64(Self.bytes.count), digests: []))
            #expect(try found("a", in: scratch) == mark(1, isAdopted: true))
        }
    }

    /// One inode at two paths is two files of two tasks.
    @Test func aSecondNameOfAFileHasAnOwnerOfItsOwn() async throws {
        try await ScratchSink.with { scratch in
            try scratch.makePart(1, Self.bytes)
            #expect(try await scratch.finalizer.finalize(try scratch.order(1, path: "a", Self.bytes)).isInPlace)
            let order = try scratch.order(2, path: "b", Self.bytes, held: try DestinationPath(validating: "a"))
            #expect(try await scratch.finalizer.finalize(order).isInPlace)
            #expect(try found("a", in: scratch) == mark(1))
            #expect(try found("b", in: scratch) == mark(2))
            try purge(2, path: "b", in: scratch)
            #expect(try scratch.fileNames() == ["a"])
            try purge(1, in: scratch)
            #expect(try scratch.fileNames() == [])
        }
    }

    /// A worker that lost its lease was late, and the content has changed since.
    @Test func anOlderVersionOfATasksOwnContentMakesRoom() async throws {
        try await ScratchSink.with { scratch in
            try scratch.makePart(1, Self.bytes)
            #expect(try await scratch.finalizer.finalize(try scratch.order(1, path: "a", Self.bytes)).isInPlace)
            let newer = ScratchSink.content(3_000, seed: 2)
            try scratch.makePart(1, version: 2, newer)
            let order = try scratch.order(1, version: 2, path: "a", newer)
            #expect(try await scratch.finalizer.finalize(order).isInPlace)
            #expect(try scratch.read("a") == newer)
            #expect(try found("a", in: scratch) == mark(1, version: 2))
        }
    }

    /// `cp` and many editors write to the file that is there, which keeps its mark.
    @Test(arguments: [false, true], [ScratchSink.content(70, seed: 3), ScratchSink.content(2_500, seed: 3)])
    func fileThatAnotherProcessWroteToIsNotTheTasksAnyMore(isFenced: Bool, mine: [UInt8]) async throws {
        try await ScratchSink.with { scratch in
            try scratch.makePart(1, Self.bytes)
            #expect(try await scratch.finalizer.finalize(try scratch.order(1, path: "a", Self.bytes)).isInPlace)
            try edit("a", mine, in: scratch)
            try purge(1, in: scratch)
            #expect(try scratch.read("a") == mine)
            for version in [1, 2] as [Int32] {
                let newer = ScratchSink.content(3_000, seed: 2)
                try scratch.makePart(1, version: version, newer)
                let order = try scratch.order(1, version: version, path: "a", newer, fenced: isFenced)
                await #expect("version \(version)") {
                    _ = try await scratch.finalizer.finalize(order)
                } throws: { error in
                    if case .destinationTaken? = error as? StorageError { true } else { false }
                }
                #expect(try scratch.read("a") == mine, "version \(version)")
            }
        }
    }
}
