import Glibc
import MusterAPI
import MusterCore
import Synchronization
import Testing

@testable import MusterWorker

/// What becomes of a file that stands at the path, by the task's rule.
@Suite struct ExistingFileRuleTests {
    let bytes = ScratchSink.content(10_000)
    let foreign = ScratchSink.content(10_000, seed: 7)

    private func isTaken(_ error: StorageError?) -> Bool {
        if case .destinationTaken? = error { error?.parksSink == false } else { false }
    }

    // MARK: - Replace

    @Test(arguments: [false, true])
    func replaceTakesThePlaceOfAFileInOneStep(fenced: Bool) async throws {
        try await ScratchSink.with { scratch in
            try scratch.makePart(1, bytes)
            try scratch.write(foreign, to: "f")
            // A process that had the old file open keeps it whole: nothing is written into it.
            let number = open(scratch.path + "/f", O_RDONLY)
            let reader = Descriptor(owning: number)
            let order = try scratch.order(1, path: "f", bytes, fenced: fenced, ifExists: .replace)
            #expect(try await scratch.finalizer.finalize(order).finished?.path == nil)
            #expect(try scratch.read("f") == bytes)
            #expect(try reader.status().links == 0)
            #expect(try scratch.partNames() == [])
            #expect(try scratch.fileNames() == ["f"])
        }
    }

    @Test(arguments: [false, true], ["directory", "link", "pipe"])
    func replaceReplacesNothingButFiles(fenced: Bool, kind: String) async throws {
        try await ScratchSink.with { scratch in
            try scratch.write(foreign, to: "other")
            switch kind {
            case "directory": #expect(mkdir(scratch.path + "/f", 0o755) == 0)
            case "link": #expect(symlink("other", scratch.path + "/f") == 0)
            default: #expect(mkfifo(scratch.path + "/f", 0o644) == 0)
            }
            let inode = scratch.inode("f")
            try scratch.makePart(1, bytes)
            let order = try scratch.order(1, path: "f", bytes, fenced: fenced, ifExists: .replace)
            let error = await #expect(throws: StorageError.self) { try await scratch.finalizer.finalize(order) }
            #expect(isTaken(error))
            #expect(scratch.inode("f") == inode)
            #expect(try scratch.read("other") == foreign)
            #expect(try scratch.partNames() == [order.part.string])
        }
    }

    @Test(arguments: [false, true])
    func replaceFetchesAgainWhatIsLost(fenced: Bool) async throws {
        try await ScratchSink.with { scratch in
            try scratch.write(foreign, to: "f")
            let order = try scratch.order(1, path: "f", bytes, fenced: fenced, ifExists: .replace)
            let error = await #expect(throws: StorageError.self) { try await scratch.finalizer.finalize(order) }
            #expect(error?.failureKind == .changed)
            #expect(try scratch.read("f") == foreign)
        }
    }

    @Test(arguments: [false, true])
    func replaceAsksOnceMoreBeforeItReplaces(fenced: Bool) async throws {
        try await ScratchSink.with { scratch in
            try scratch.write(foreign, to: "f")
            // However often the watch is asked, a refusal at any of these times leaves the file alone.
            for allowed in 0..<100 {
                try scratch.makePart(1, bytes)
                let asked = Atomic<Int>(0)
                let watch = FinalizeWatch(mayContinue: { asked.add(1, ordering: .relaxed).oldValue < allowed })
                let order = try scratch.order(
                    1, path: "f", bytes, chunkSize: 10_000, fenced: fenced, ifExists: .replace)
                let outcome = try await scratch.finalizer.finalize(order, watch: watch)
                if outcome.isInPlace {
                    #expect(asked.load(ordering: .relaxed) == allowed && allowed > 3)
                    return
                }
                #expect(outcome == .stopped)
                #expect(try scratch.read("f") == foreign)
            }
            Issue.record("it never ended")
        }
    }

    // MARK: - Rename

    @Test(arguments: [false, true])
    func renameTakesTheFirstFreeName(fenced: Bool) async throws {
        try await ScratchSink.with { scratch in
            let order = { (task: Int64) in
                try scratch.order(task, path: "d/f.tar", bytes, fenced: fenced, ifExists: .rename)
            }
            #expect(mkdir(scratch.path + "/d", 0o755) == 0)
            try scratch.write(foreign, to: "d/f.tar")
            #expect(symlink("f.tar", scratch.path + "/d/f (2).tar") == 0)
            #expect(mkdir(scratch.path + "/d/f (3).tar", 0o755) == 0)
            try scratch.write([], to: "d/f (4).tar")
            try scratch.write(foreign, to: "d/f (6).tar")
            try scratch.makePart(1, bytes)
            let first = try await scratch.finalizer.finalize(order(1))
            #expect(first.finished?.path == "d/f (5).tar")
            #expect(try scratch.read("d/f (5).tar") == bytes)
            #expect(try scratch.read("d/f.tar") == foreign)
            #expect(try scratch.read("d/f (6).tar") == foreign)
            #expect(try scratch.partNames() == [])
        }
    }

    @Test(arguments: [false, true])
    func renameKeepsAPathThatIsFree(fenced: Bool) async throws {
        try await ScratchSink.with { scratch in
            try scratch.makePart(1, bytes)
            let order = try scratch.order(1, path: "d/f", bytes, fenced: fenced, ifExists: .rename)
            let finished = try await scratch.finalizer.finalize(order).finished
            #expect(finished != nil && finished?.path == nil)
            #expect(try scratch.read("d/f") == bytes)
        }
    }

    @Test(arguments: [false, true], ["f", "f (2)", "f (4)"])
    func renameMakesNoSecondCopyOfTheSameContent(fenced: Bool, name: String) async throws {
        try await ScratchSink.with { scratch in
            for other in ["f", "f (2)", "f (3)", "f (4)"] where other != name { try scratch.write(foreign, to: other) }
            try scratch.write(bytes, to: name)
            let inode = scratch.inode(name)
            try scratch.makePart(1, bytes)
            let order = try scratch.order(1, path: "f", bytes, fenced: fenced, ifExists: .rename)
            let finished = try await scratch.finalizer.finalize(order).finished
            #expect(finished?.path == (name == "f" ? nil : name))
            #expect(scratch.inode(name) == inode)
            #expect(try scratch.fileNames() == ["f", "f (2)", "f (3)", "f (4)"])
            #expect(try scratch.partNames() == [])
        }
    }

    @Test(arguments: [false, true])
    func renameGivesUpAfterAThousandNames(fenced: Bool) async throws {
        try await ScratchSink.with { scratch in
            try scratch.write(foreign, to: "f")
            for number in 2...1_001 { try scratch.write([], to: "f (\(number))") }
            try scratch.makePart(1, bytes)
            let order = try scratch.order(1, path: "f", bytes, fenced: fenced, ifExists: .rename)
            let error = await #expect(throws: StorageError.self) { try await scratch.finalizer.finalize(order) }
            #expect(isTaken(error))
            #expect(try scratch.fileNames().count == 1_001)
            #expect(try scratch.partNames() == [order.part.string])
            #expect(unlink(scratch.path + "/f (1001)") == 0)
            #expect(try await scratch.finalizer.finalize(order).finished?.path == "f (1001)")
        }
    }

    @Test func manyTasksOfOneNameGetOneEach() async throws {
        try await ScratchSink.with { scratch in
            let content = (1...20).map { ScratchSink.content(5_000, seed: UInt64($0)) }
            for (index, bytes) in content.enumerated() { try scratch.makePart(Int64(index + 1), bytes) }
            let paths = await withTaskGroup(of: (Int, String?).self) { group in
                for (index, bytes) in content.enumerated() {
                    group.addTask {
                        let order = try? scratch.order(Int64(index + 1), path: "f.x", bytes, ifExists: .rename)
                        guard let order, let outcome = try? await scratch.finalizer.finalize(order) else {
                            return (index, nil)
                        }
                        return (index, outcome.finished.map { $0.path ?? "f.x" })
                    }
                }
                return await group.reduce(into: [:]) { $0[$1.0] = $1.1 }
            }
            #expect(Set(paths.values) == Set(["f.x"] + (2...20).map { "f (\($0)).x" }))
            for (index, path) in paths { #expect(try scratch.read(path) == content[index]) }
        }
    }

    // MARK: - Fail

    @Test func failFailsForWhateverWasThereBefore() async throws {
        try await ScratchSink.with { scratch in
            for content in [foreign, bytes, []] {
                try scratch.write(content, to: "f")
                let inode = scratch.inode("f")
                try scratch.makePart(1, bytes)
                let order = try scratch.order(1, path: "f", bytes, ifExists: .fail)
                let error = await #expect(throws: StorageError.self) { try await scratch.finalizer.finalize(order) }
                #expect(isTaken(error))
                #expect(scratch.inode("f") == inode)
                #expect(try scratch.read("f") == content)
            }
        }
    }

    @Test func failFailsForOtherContentAlsoWhereALeaseWasLost() async throws {
        try await ScratchSink.with { scratch in
            try scratch.write(foreign, to: "f")
            for hasPart in [false, true] {
                if hasPart { try scratch.makePart(1, bytes) }
                let order = try scratch.order(1, path: "f", bytes, fenced: true, ifExists: .fail)
                let error = await #expect(throws: StorageError.self) { try await scratch.finalizer.finalize(order) }
                #expect(isTaken(error))
            }
            #expect(try scratch.read("f") == foreign)
        }
    }

    @Test(arguments: ExistingFileRule.allCases, [false, true])
    func aFreePathIsTakenWhateverTheRule(rule: ExistingFileRule, fenced: Bool) async throws {
        try await ScratchSink.with { scratch in
            try scratch.makePart(1, bytes)
            let order = try scratch.order(1, path: "d/f", bytes, fenced: fenced, ifExists: rule)
            #expect(try await scratch.finalizer.finalize(order).isInPlace)
            #expect(try scratch.read("d/f") == bytes)
            #expect(try scratch.partNames() == [])
        }
    }
}
