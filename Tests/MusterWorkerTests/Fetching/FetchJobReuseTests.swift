import Glibc
import MusterAPI
import MusterCore
import MusterTestSupport
import SystemPackage
import Testing

@testable import MusterWorker

/// A lease that names a file of the sink which may be the content: the origin is asked, the file checked, and only then used.
@Suite struct FetchJobReuseTests {
    private let content = ScriptedOrigin.Content.seeded(seed: 31, size: 3 * mebibyte)
    private let other = ScriptedOrigin.Content.seeded(seed: 32, size: 3 * mebibyte)
    /// The Last-Modified that the scripted origin states.
    private let modified: Int64 = 1_577_836_800

    /// The first lease of a task that wants `/f` at `b`, where an earlier task has put it at `a`.
    private func lease(_ origin: ScriptedOrigin, path: String = "b") -> LeaseDocument {
        var lease = LeaseDocument.first(origin.url("/f"), task: 2, path: path)
        let file = ScriptedOrigin.File(content)
        lease.policy = TransferPolicy()
        lease.have = HeldFile(
            path: "a",
            representation: Representation(size: content.size, etag: file.etag, lastModified: file.lastModified),
            crc: crc(content.allBytes)
        )
        return lease
    }

    private func inode(_ bench: JobBench, _ path: String) -> UInt64? {
        var status = stat()
        return lstat(bench.directory.path.appending(path).string, &status) == 0 ? UInt64(status.st_ino) : nil
    }

    private func parts(_ bench: JobBench) throws -> [String] {
        try Directory(path: bench.directory.path.appending(ScratchSink.parts).string).names()
    }

    /// Checks that the file came from the origin after all, and that no part is left.
    private func expectFetched(_ ending: JobEnding, _ bench: JobBench, is bytes: [UInt8]) throws {
        #expect(ending.finished != nil && ending.finished?.reusedFrom == nil, "\(ending)")
        #expect(bench.context.takeReceived() == Int64(bytes.count))
        try #expect(bench.file("b") == bytes)
        try #expect(parts(bench) == [])
    }

    @Test func unchangedFileIsUsedAgain() async throws {
        try await withBench { bench, origin in
            origin.serve("/f", ScriptedOrigin.File(content))
            try bench.put("a", content.allBytes)
            let ending = await bench.run(lease(origin))
            #expect(ending.finished?.reusedFrom == "a" && ending.finished?.size == content.size)
            #expect(ending.durable == DurablePrefix(offset: content.size, crc: crc(content.allBytes)))
            #expect(ending.learned?.representation.etag == ScriptedOrigin.File(content).etag)
            #expect(bench.context.takeReceived() == 0)
            let fetched = bench.news.value.count { if case .fetched = $0.news { true } else { false } }
            #expect(fetched == 1, "its slot serves the next one while it is put in place")
            #expect(origin.requests.map(\.status) == [304])
            #expect(origin.requests.first?.header("If-None-Match") == ScriptedOrigin.File(content).etag)
            try #expect(bench.file("b") == content.allBytes && parts(bench) == [])
            // The connection serves the next requests. An idle connection is closed while a transfer waits for more than a
            // second (row 22b), which can happen now and then on a busy machine.
            for number in 3...7 {
                var next = lease(origin, path: "c\(number)")
                next.task = TaskID(Int64(number))
                #expect(await bench.run(next).finished?.reusedFrom == "a")
            }
            #expect(origin.connectionCount < 4)
        }
    }

    /// The job asks again without a condition, and gets a page or nothing then too.
    @Test(arguments: [0, 900] as [Int64]) func smallerBodyWithoutValidatorReplacesNoFile(size: Int64) async throws {
        try await withBench { bench, origin in
            var page = ScriptedOrigin.File(.seeded(seed: 33, size: size), contentType: "text/html")
            (page.etag, page.lastModified) = (nil, nil)
            origin.serve("/f", page)
            origin.misbehave("/f", .ignoreRange)
            let failure = await bench.run(lease(origin)).failure
            #expect(failure?.kind == .network, "\(failure as Any)")
            #expect(failure?.detail.contains("where the origin had \(content.size) before") == true)
            #expect(origin.requests.last?.header("If-None-Match") == nil)
        }
    }

    @Test func dateIsAskedAboutWhereThereIsNoTag() async throws {
        try await withBench { bench, origin in
            origin.serve("/f", ScriptedOrigin.File(content))
            try bench.put("a", content.allBytes)
            var lease = lease(origin)
            lease.have?.representation.etag = nil
            lease.have?.representation.isDateStrong = true
            #expect(await bench.run(lease).finished?.reusedFrom == "a")
            #expect(origin.requests.first?.header("If-Modified-Since") == "Wed, 01 Jan 2020 00:00:00 GMT")
            #expect(origin.requests.map(\.status) == [304])
        }
    }

    /// An origin that ignores conditions sends the file again; only its head is needed.
    @Test func unchangedFileIsUsedAgainThoughItIsSent() async throws {
        try await withBench { bench, origin in
            origin.serve("/f", ScriptedOrigin.File(content))
            origin.misbehave("/f", .ignoreConditions)
            try bench.put("a", content.allBytes)
            #expect(await bench.run(lease(origin)).finished?.reusedFrom == "a")
            #expect(bench.context.takeReceived() == 0 && origin.requests.count == 1)
            try #expect(bench.file("b") == content.allBytes && parts(bench) == [])
            // An answer from another URL says nothing about the held file, so its body is fetched.
            var other = lease(origin, path: "b")
            other.task = TaskID(3)
            other.path = "c"
            other.have?.effectiveURL = "http://elsewhere.example/f"
            #expect(await bench.run(other).finished?.reusedFrom == nil)
            #expect(origin.requests.count == 2)
            try #expect(bench.file("c") == content.allBytes)
        }
    }

    @Test func changedContentIsFetchedInOneRequest() async throws {
        try await withBench { bench, origin in
            origin.serve("/f", ScriptedOrigin.File(other))
            try bench.put("a", content.allBytes)
            try expectFetched(await bench.run(lease(origin)), bench, is: other.allBytes)
            #expect(origin.requests.count == 1)
            try #expect(bench.file("a") == content.allBytes)
        }
    }

    @Test func fileThatIsGoneIsFetched() async throws {
        try await withBench { bench, origin in
            origin.serve("/f", ScriptedOrigin.File(content))
            try expectFetched(await bench.run(lease(origin)), bench, is: content.allBytes)
            #expect(origin.requests.map(\.status) == [304, 206])
            #expect(origin.requests.last?.header("If-None-Match") == nil)
        }
    }

    @Test(arguments: [false, true])
    func fileThatIsNotWhatItWasIsFetched(isShorter: Bool) async throws {
        try await withBench { bench, origin in
            origin.serve("/f", ScriptedOrigin.File(content))
            let bytes = isShorter ? Array(content.allBytes.dropLast()) : other.allBytes
            try bench.put("a", bytes)
            try expectFetched(await bench.run(lease(origin)), bench, is: content.allBytes)
            try #expect(bench.file("a") == bytes)
        }
    }

    @Test func linkInTheWayIsNotFollowed() async throws {
        try await withBench { bench, origin in
            origin.serve("/f", ScriptedOrigin.File(content))
            try bench.put("elsewhere/a", content.allBytes)
            let root = bench.directory.path
            #expect(symlink(root.appending("elsewhere/a").string, root.appending("a").string) == 0)
            try expectFetched(await bench.run(lease(origin)), bench, is: content.allBytes)
        }
    }

    @Test func digestsAreCheckedBesides() async throws {
        try await withBench { bench, origin in
            origin.serve("/f", ScriptedOrigin.File(content))
            try bench.put("a", content.allBytes)
            var lease = lease(origin)
            lease.have?.digests = ["sha256": content.sha256()]
            lease.policy?.computeDigests = [.md5]
            let ending = await bench.run(lease)
            #expect(ending.finished?.reusedFrom == "a" && ending.finished?.digests["sha256"] == content.sha256())
            #expect(ending.finished?.digests["md5"] != nil)
            // As if the file had changed since that digest was computed.
            lease.have?.digests = ["sha256": other.sha256()]
            lease.path = "c"
            lease.task = TaskID(3)
            #expect(await bench.run(lease).finished?.reusedFrom == nil)
            // The caller's digest decides as always, after the content was fetched.
            lease.have?.digests = [:]
            lease.expectedDigests = ["sha256": other.sha256()]
            lease.path = "d"
            lease.task = TaskID(4)
            #expect(await bench.run(lease).failure?.kind == .digestMismatch)
            try #expect(bench.file("a") == content.allBytes)
        }
    }

    /// A second link would have the first file's modification time.
    @Test func fileWithATimeOfItsOwnIsNotLinked() async throws {
        try await withBench { bench, origin in
            origin.serve("/f", ScriptedOrigin.File(content))
            try bench.put("a", content.allBytes, modified: 5)
            var lease = lease(origin)
            lease.policy?.keepModificationTime = true
            #expect(await bench.run(lease).finished?.reusedFrom == "a")
            #expect(inode(bench, "b") != inode(bench, "a"))
            try #expect(bench.modificationTime("b") == modified && bench.modificationTime("a") == 5)
            try #expect(bench.file("b") == content.allBytes && parts(bench) == [])
        }
    }

    @Test(.enabled(if: ScratchMount.isPermitted, "needs to be root"))
    func fileOfAnotherFileSystemIsCopied() async throws {
        try await withBench { bench, origin in
            origin.serve("/f", ScriptedOrigin.File(content))
            let place = bench.directory.path.appending("far").string
            #expect(mkdir(place, 0o755) == 0)
            #expect(mount("tmpfs", place, "tmpfs", 0, "size=8m") == 0)
            defer { umount2(place, Int32(MNT_DETACH)) }
            try bench.put("far/a", content.allBytes)
            var lease = lease(origin)
            lease.have?.path = "far/a"
            #expect(await bench.run(lease).finished?.reusedFrom == "far/a")
            try #expect(bench.file("b") == content.allBytes && parts(bench) == [])
            #expect(bench.context.takeReceived() == 0)
        }
    }

    @Test func answerThatCannotVouchIsAskedAgain() async throws {
        try await withBench { bench, origin in
            origin.serve("/f", ScriptedOrigin.File(content))
            origin.misbehave("/f", .unmodified(etag: "\"another\""), when: .first(1))
            try bench.put("a", content.allBytes)
            try expectFetched(await bench.run(lease(origin)), bench, is: content.allBytes)
            // The tag is of another server, to which the same URL led when the file was fetched.
            var moved = lease(origin, path: "c")
            moved.task = TaskID(3)
            moved.have?.effectiveURL = "http://elsewhere.test/f"
            #expect(await bench.run(moved).finished?.reusedFrom == nil)
            moved.have?.effectiveURL = origin.url("/f?signature=1")
            moved.path = "d"
            moved.task = TaskID(4)
            #expect(await bench.run(moved).finished?.reusedFrom == "a")
        }
    }

    @Test func unaskedUnmodifiedIsAFailure() async throws {
        try await withBench { bench, origin in
            origin.serve("/f", ScriptedOrigin.File(content))
            origin.misbehave("/f", .unmodified(etag: nil))
            var lease = lease(origin)
            lease.have = nil
            // A caller's own condition would only make the answer useless.
            lease.source?.headers = ["If-None-Match": "*"]
            #expect(await bench.run(lease).failure?.kind == .httpStatus(304))
            #expect(origin.requests.first?.header("If-None-Match") == nil)
            // An origin that still answers 304 to the request without a condition fails too.
            try bench.put("a", other.allBytes)
            #expect(await bench.run(self.lease(origin)).failure?.kind == .httpStatus(304))
        }
    }

    @Test(arguments: ExistingFileRule.allCases)
    func fileAtTheVeryPathStaysAsItIs(rule: ExistingFileRule) async throws {
        try await withBench { bench, origin in
            origin.serve("/f", ScriptedOrigin.File(content))
            try bench.put("a", content.allBytes, modified: 5)
            let before = inode(bench, "a")
            var lease = lease(origin, path: "a")
            lease.policy?.ifExists = rule
            let ending = await bench.run(lease)
            if rule == .fail {
                #expect(ending.failure?.kind == .storage && origin.connectionCount == 0)
            } else {
                #expect(ending.finished?.reusedFrom == "a" && ending.finished?.path == nil)
            }
            #expect(bench.context.takeReceived() == 0)
            #expect(inode(bench, "a") == before || rule == .replace)
            try #expect(bench.file("a") == content.allBytes)
            try #expect(parts(bench) == [])
        }
    }

    /// A worker died after it had linked the file and before it had moved the link. No later step may write into the other task's file (I8).
    @Test func successorOfADeadLinkWritesElsewhere() async throws {
        try await withBench { bench, origin in
            origin.serve("/f", ScriptedOrigin.File(other))
            try bench.put("a", content.allBytes)
            let root = bench.directory.path
            let left = root.appending("\(ScratchSink.own)/2.copy").string
            #expect(link(root.appending("a").string, left) == 0)
            var lease = lease(origin)
            lease.epoch = LeaseEpoch(2)
            lease.fenced = true
            lease.have = nil
            try expectFetched(await bench.run(lease), bench, is: other.allBytes)
            try #expect(bench.file("a") == content.allBytes)
        }
    }

    @Test func laterVersionsAndMirrorsAreAskedWithoutACondition() async throws {
        try await withBench { bench, origin in
            origin.serve("/f", ScriptedOrigin.File(content))
            try bench.put("a", content.allBytes)
            var again = lease(origin)
            again.version = 2
            #expect(await bench.run(again).finished?.reusedFrom == nil)
            var mirror = lease(origin, path: "c")
            mirror.source?.ordinal = 1
            mirror.task = TaskID(3)
            #expect(await bench.run(mirror).finished?.reusedFrom == nil)
            #expect(origin.requests.allSatisfy { $0.header("If-None-Match") == nil })
        }
    }
}
