import Glibc
import MusterAPI
import MusterCore
import MusterTestSupport
import SystemPackage
import Testing

@testable import MusterWorker

/// What becomes of a file that stands at the task's path already (`ifExists`), before and at the response head.
@Suite struct FetchJobExistingTests {
    private let content = ScriptedOrigin.Content.seeded(seed: 21, size: 3 * mebibyte)
    /// The Last-Modified that the scripted origin states.
    private let modified: Int64 = 1_577_836_800

    private func lease(_ origin: ScriptedOrigin, _ rule: ExistingFileRule? = nil) -> LeaseDocument {
        var lease = LeaseDocument.first(origin.url("/f"), path: "f")
        lease.policy = TransferPolicy()
        lease.policy?.ifExists = rule
        return lease
    }

    private func other(_ size: Int64) -> [UInt8] { ScriptedOrigin.Content.seeded(seed: 22, size: size).allBytes }

    @Test func rightDigestCostsNoRequest() async throws {
        try await withBench { bench, origin in
            try bench.put("f", content.allBytes)
            var lease = lease(origin)
            lease.expectedDigests = ["sha256": content.sha256()]
            lease.policy?.computeDigests = [.md5]
            let ending = await bench.run(lease)
            #expect(ending.finished?.wasThere == true)
            #expect(ending.finished?.size == 3 * mebibyte)
            #expect(ending.finished?.digests["sha256"] == content.sha256())
            #expect(ending.finished?.digests["md5"] != nil)
            #expect(origin.connectionCount == 0)
            #expect(!bench.exists("\(ScratchSink.parts)/1.1.part"))
        }
    }

    /// A worker died between the rename and its report (I16). The origin may have nothing more to give.
    @Test(arguments: [ExistingFileRule.verify, .fail, .replace, .rename], [false, true])
    func fileOfALostLeaseIsTakenWithoutARequest(rule: ExistingFileRule, isPlanned: Bool) async throws {
        try await withBench { bench, origin in
            if rule == .rename { try bench.put("f", other(7)) }
            origin.serve("/f", ScriptedOrigin.File(content))
            var lease = lease(origin, rule)
            let first = await bench.run(lease)
            #expect(first.finished?.size == 3 * mebibyte && first.finished?.path == (rule == .rename ? "f (2)" : nil))
            origin.misbehave("/f", .status(410, retryAfter: nil))
            let requests = origin.requests.count
            lease.fenced = true
            lease.policy?.computeDigests = [.md5]
            if isPlanned {
                lease.planned = true
                lease.representation = representation(of: content)
                lease.end = 3 * mebibyte
                lease.resume = prefix(of: content, mebibyte)
            }
            let second = await bench.run(lease)
            #expect(second.durable == first.durable && second.durable?.offset == 3 * mebibyte)
            #expect(second.finished?.path == first.finished?.path && second.finished?.wasThere == true)
            #expect(second.finished?.digests.keys.sorted() == ["md5"])
            #expect(origin.requests.count == requests)
            try #expect(bench.file(rule == .rename ? "f (2)" : "f") == content.allBytes)
        }
    }

    private func representation(of content: ScriptedOrigin.Content) -> Representation {
        let file = ScriptedOrigin.File(content)
        return Representation(
            size: content.size, etag: file.etag, lastModified: file.lastModified, isDateStrong: true)
    }

    private func prefix(of content: ScriptedOrigin.Content, _ size: Int64) -> DurablePrefix {
        DurablePrefix(offset: size, crc: CRC32C.extend(CRC32C.empty, content.allBytes.prefix(Int(size))))
    }

    /// Puts the task's file in place. The origin has other content from then on, which is returned.
    private func place(
        _ lease: LeaseDocument, _ bench: JobBench, _ origin: ScriptedOrigin, next size: Int64 = 3 * mebibyte
    ) async -> ScriptedOrigin.Content {
        origin.serve("/f", ScriptedOrigin.File(content))
        #expect(await bench.run(lease).finished?.size == 3 * mebibyte)
        let next = ScriptedOrigin.Content.seeded(seed: 23, size: size)
        origin.serve("/f", ScriptedOrigin.File(next))
        return next
    }

    /// What a later answer contradicts.
    enum Contradiction: CaseIterable, Sendable { case validators, prefix, digest }

    /// An older state of the database was restored, or the file was away when the next lease looked for it: since then other content came, of the
    /// same version. The file has the task's mark all the same, and is not that content (I8).
    @Test(arguments: Contradiction.allCases)
    func fileOfALostLeaseIsNotTakenForAnotherContent(contradiction: Contradiction) async throws {
        try await withBench { bench, origin in
            var lease = lease(origin, .replace)
            let next = await place(lease, bench, origin)
            lease.fenced = true
            lease.planned = true
            lease.end = 3 * mebibyte
            lease.representation = representation(of: contradiction == .validators ? next : content)
            switch contradiction {
            case .validators: break
            case .prefix: lease.resume = prefix(of: next, mebibyte)
            case .digest: lease.expectedDigests = ["sha256": next.sha256()]
            }
            let requests = origin.requests.count
            #expect(await bench.run(lease).finished?.wasThere == nil)
            #expect(origin.requests.count > requests)
        }
    }

    /// An older state of the database was restored, which does not know that the task's file was put in place (F24).
    @Test(arguments: [ExistingFileRule.verify, .fail], [false, true])
    func ownFileOfAPastThatIsUnknownIsReplacedByTheNextVersion(rule: ExistingFileRule, hasDigest: Bool) async throws {
        try await withBench { bench, origin in
            var lease = lease(origin, rule)
            let next = await place(lease, bench, origin, next: 2 * mebibyte)
            if hasDigest { lease.expectedDigests = ["sha256": next.sha256()] }
            let failure = await bench.run(lease).failure
            #expect(failure?.kind == .changed && failure?.detail.hasPrefix("the task's own file at f") == true)
            lease.version = 2
            #expect(await bench.run(lease).finished?.size == 2 * mebibyte)
            try #expect(bench.file("f") == next.allBytes)
        }
    }

    /// Another program wrote to it, or it is of an older version of the content: the origin decides.
    @Test(arguments: [false, true])
    func fileOfALostLeaseThatIsNotTheContentIsFetchedAgain(isOlder: Bool) async throws {
        try await withBench { bench, origin in
            var lease = lease(origin, .replace)
            let next = await place(lease, bench, origin)
            lease.fenced = true
            if isOlder { lease.version = 2 } else { try bench.put("f", other(3 * mebibyte)) }
            #expect(await bench.run(lease).finished?.wasThere == nil)
            try #expect(bench.file("f") == next.allBytes)
        }
    }

    /// No byte is fetched that could not be put in place.
    @Test(arguments: [ExistingFileRule.verify, .fail], ["a directory", "a symbolic link"])
    func directoryOrLinkInTheWayIsNamedBeforeAnyRequest(rule: ExistingFileRule, what: String) async throws {
        try await withBench { bench, origin in
            let path = bench.directory.path.appending("f").string
            try #require(what == "a directory" ? mkdir(path, 0o755) == 0 : symlink("elsewhere", path) == 0)
            let failure = await bench.run(lease(origin, rule)).failure
            #expect(failure?.kind == .storage && failure?.detail == "something else stands at f: it is \(what)")
            #expect(origin.connectionCount == 0)
        }
    }

    @Test func wrongDigestFailsBeforeAnyRequest() async throws {
        try await withBench { bench, origin in
            try bench.put("f", other(3 * mebibyte))
            var lease = lease(origin)
            lease.expectedDigests = ["sha256": content.sha256()]
            let failure = await bench.run(lease).failure
            #expect(failure?.kind == .storage)
            #expect(failure?.detail.hasPrefix("a different file stands at f") == true)
            #expect(origin.connectionCount == 0)
            try #expect(bench.file("f") == other(3 * mebibyte))
        }
    }

    @Test func sameSizeAndTimeTakeNoBody() async throws {
        try await withBench { bench, origin in
            origin.serve("/f", ScriptedOrigin.File(content))
            origin.hold("/f", afterBytes: 0)
            try bench.put("f", content.allBytes, modified: modified)
            let ending = await bench.run(lease(origin))
            #expect(ending.finished?.wasThere == true)
            #expect(ending.learned?.representation.size == 3 * mebibyte)
            #expect(bench.context.takeReceived() == 0)
            #expect(!bench.exists("\(ScratchSink.parts)/1.1.part"))
        }
    }

    @Test func statedDigestDecidesWhateverTheTimeIs() async throws {
        try await withBench { bench, origin in
            var file = ScriptedOrigin.File(content)
            file.headers = [.reprDigest(of: content, .sha256)]
            origin.serve("/f", file)
            origin.hold("/f", afterBytes: 0)
            try bench.put("f", content.allBytes, modified: 5)
            #expect(await bench.run(lease(origin)).finished?.wasThere == true)
            try bench.put("f", other(3 * mebibyte), modified: modified)
            #expect(await bench.run(lease(origin)).failure?.kind == .storage)
            try #expect(bench.file("f") == other(3 * mebibyte))
        }
    }

    @Test func anotherSizeFailsAtTheHead() async throws {
        try await withBench { bench, origin in
            origin.serve("/f", ScriptedOrigin.File(content))
            origin.hold("/f", afterBytes: 0)
            try bench.put("f", other(5), modified: modified)
            #expect(await bench.run(lease(origin)).failure?.kind == .storage)
            #expect(bench.context.takeReceived() == 0)
            try #expect(bench.file("f") == other(5))
        }
    }

    @Test func bytesDecideWhereNothingElseDoes() async throws {
        try await withBench { bench, origin in
            origin.serve("/f", ScriptedOrigin.File(content))
            // A file that a predecessor put there, before it died without a report, looks like this.
            try bench.put("f", content.allBytes, modified: 5)
            let ending = await bench.run(lease(origin))
            #expect(ending.finished?.size == 3 * mebibyte)
            try bench.put("f", other(3 * mebibyte), modified: 5)
            #expect(await bench.run(lease(origin)).failure?.kind == .storage)
            try #expect(bench.file("f") == other(3 * mebibyte))
        }
    }

    @Test func ruleFailMakesNoRequest() async throws {
        try await withBench { bench, origin in
            try bench.put("f", content.allBytes, modified: modified)
            var lease = lease(origin, .fail)
            lease.expectedDigests = ["sha256": content.sha256()]
            #expect(await bench.run(lease).failure?.kind == .storage)
            #expect(origin.connectionCount == 0)
        }
    }

    @Test func rulesThatMakeRoomFetchAtOnce() async throws {
        try await withBench { bench, origin in
            origin.serve("/f", ScriptedOrigin.File(content))
            try bench.put("f", other(5))
            #expect(await bench.run(lease(origin, .rename)).finished?.path == "f (2)")
            try #expect(bench.file("f") == other(5))
            var replacing = lease(origin, .replace)
            replacing.task = TaskID(2)
            #expect(await bench.run(replacing).finished?.path == nil)
            try #expect(bench.file("f") == content.allBytes)
        }
    }

    @Test func laterLeasesDoNotLookAgain() async throws {
        try await withBench { bench, origin in
            origin.serve("/f", ScriptedOrigin.File(content))
            try bench.put("f", other(5))
            let known = Representation(size: 3 * mebibyte, etag: ScriptedOrigin.File(content).etag)
            var chunk = LeaseDocument.chunk(origin.url("/f"), mebibyte, 2 * mebibyte, of: known)
            chunk.path = "f"
            #expect(await bench.run(chunk).durable?.offset == 2 * mebibyte)
        }
    }

    @Test func fileThatAPredecessorMayHavePutThereIsNotJudgedBeforehand() async throws {
        try await withBench { bench, origin in
            origin.serve("/f", ScriptedOrigin.File(content))
            try bench.put("f", content.allBytes)
            var lease = lease(origin, .fail)
            lease.fenced = true
            #expect(await bench.run(lease).finished?.size == 3 * mebibyte)
            #expect(origin.requests.count == 1)
        }
    }
}
