import Glibc
import MusterCore
import Testing

@testable import MusterWorker

/// No task's path leads out of its sink, whatever stands in the way (range contract, row 34).
@Suite struct ConfinementTests {
    @Test(arguments: ["out", "in/side", "in"])
    func aLinkOnTheWayIsNotFollowed(link: String) async throws {
        let outside = try ScratchSink.makeDirectory()
        try await ScratchSink.with { scratch in
            #expect(mkdir(scratch.path + "/in", 0o755) == 0)
            #expect(mkdir(scratch.path + "/real", 0o755) == 0)
            if link == "in" { rmdir(scratch.path + "/in") }
            // Not even a link that stays within the sink is followed: it may point elsewhere later.
            #expect(symlink(link == "in" ? "real" : outside, scratch.path + "/" + link) == 0)
            try scratch.makePart(1, [1])
            for fenced in [false, true] {
                for path in [link + "/f", link + "/deep/f"] {
                    let order = try scratch.order(1, path: path, [1], fenced: fenced)
                    let error = await #expect(throws: StorageError.self) { try await scratch.finalizer.finalize(order) }
                    guard case .symbolicLink? = error else {
                        Issue.record("\(String(describing: error))")
                        continue
                    }
                    #expect(error?.failureKind == .storage && error?.parksSink == false)
                }
            }
            #expect(try Directory(path: outside).names().isEmpty)
            #expect(try Directory(path: scratch.path + "/real").names().isEmpty)
        }
        ScratchSink.remove(outside)
    }

    @Test func aLinkAtThePathItselfIsNeitherFollowedNorReplaced() async throws {
        try await ScratchSink.with { scratch in
            let outside = try ScratchSink.makeDirectory()
            defer { ScratchSink.remove(outside) }
            for target in [outside + "/missing", "same"] {
                try scratch.write([1], to: "same")
                #expect(symlink(target, scratch.path + "/link") == 0)
                try scratch.makePart(1, [1])
                for fenced in [false, true] {
                    let order = try scratch.order(1, path: "link", [1], fenced: fenced)
                    await #expect(throws: StorageError.self) { try await scratch.finalizer.finalize(order) }
                }
                // Without a part the link is not taken for the file either, although it leads to the right bytes.
                try scratch.sink.purge(task: TaskID(1))
                let order = try scratch.order(1, path: "link", [1])
                await #expect(throws: StorageError.self) { try await scratch.finalizer.finalize(order) }
                #expect(unlink(scratch.path + "/link") == 0)
            }
            #expect(try Directory(path: outside).names().isEmpty)
        }
    }

    @Test func aFileOnTheWayIsRefused() async throws {
        try await ScratchSink.with { scratch in
            try scratch.write([1], to: "file")
            try scratch.makePart(1, [1])
            let order = try scratch.order(1, path: "file/f", [1])
            let error = await #expect(throws: StorageError.self) { try await scratch.finalizer.finalize(order) }
            #expect(error?.parksSink == false)
        }
    }

    /// A slash with a combining mark is one character in Swift, but a slash to the system.
    @Test(arguments: [
        "../\u{301}x", "a/../\u{301}x", "/\u{301}tmp/x", "..", "a/../../x", ".muster/parts/x", ".muster/\u{301}x",
        "a/./x",
        "a//x", "a\u{0}b", "/tmp/x", "a/",
    ])
    func noPathReachesOutOfTheSink(text: String) async throws {
        // Most of these paths are refused when the task is added. The others are refused here.
        guard let path = try? DestinationPath(validating: text) else { return }
        try await ScratchSink.with { scratch in
            try scratch.makePart(1, [1])
            var order = try scratch.order(1, path: "x", [1])
            order.path = path
            let refused = order
            let error = await #expect(throws: StorageError.self) { try await scratch.finalizer.finalize(refused) }
            #expect(error?.parksSink == false)
        }
    }

    @Test func aLinkBehindACombiningMarkIsNotFollowedEither() async throws {
        let outside = try ScratchSink.makeDirectory()
        try await ScratchSink.with { scratch in
            #expect(symlink(outside, scratch.path + "/link") == 0)
            try scratch.makePart(1, [1])
            let order = try scratch.order(1, path: "link/\u{301}f", [1])
            await #expect(throws: StorageError.self) { try await scratch.finalizer.finalize(order) }
            #expect(try Directory(path: outside).names().isEmpty)
        }
        ScratchSink.remove(outside)
    }

    @Test func anImpossibleNameFailsTheTaskAndNotTheSink() async throws {
        try await ScratchSink.with { scratch in
            #expect(mkdir(scratch.path + "/taken", 0o755) == 0)
            try scratch.makePart(1, [1])
            let order = try scratch.order(1, path: "taken", [1])
            let error = await #expect(throws: StorageError.self) { try await scratch.finalizer.finalize(order) }
            guard case .destinationTaken? = error else {
                Issue.record("\(String(describing: error))")
                return
            }
        }
    }
}
