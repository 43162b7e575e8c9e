import FoundationEssentials
import MusterAPI
import MusterCore
import MusterPostgres
import MusterStore
import Testing

/// Which files of a sink are offered for reuse to tasks with the same request, and what is recorded when they are used.
@Suite struct ReuseTests {
    private static let day = "Sun, 01 Mar 2026 12:00:00 GMT"

    /// A group with one task for `http://a.test/same`.
    private func makeGroup(
        _ name: String, on fixture: StoreFixture, urls: [String] = ["http://a.test/same"], sink: String = "sink",
        headers: String? = nil, options: String? = nil, groupOptions: String? = nil, digests: String? = nil,
        size: Int64? = nil, policy: String? = nil, resolver: String? = nil, reuses: Bool = true
    ) async throws {
        var upload = try await fixture.store.beginUpload()
        let task = try TaskSpecification(urls: urls, key: "t", path: "\(name)/t", size: size, priority: 0)
        let staged = StagedTask(
            line: 1, task: task, digests: digests, metadata: nil, headers: headers, options: options)
        try await fixture.store.stage([staged], upload: &upload)
        var creation = GroupCreation(name: name, sink: sink)
        creation.isSealed = true
        creation.options = groupOptions
        creation.policy = policy
        creation.resolver = resolver
        creation.reuses = reuses
        _ = try await fixture.store.createGroup(creation, upload: upload)
    }

    /// Fetches everything there is, with one lease per task.
    private func fetch(
        _ worker: inout TestWorker, etag: String? = "\"1\"", isDateStrong: Bool? = nil, crc: UInt32? = 9,
        digests: String = "{}", size: Int64 = 80
    ) async throws {
        for lease in try await worker.claim(8) {
            try await worker.store.report(finished: [
                .init(
                    session: worker.session, lease: lease.name, size: size, digests: digests,
                    representation: Representation(
                        size: size, etag: etag, lastModified: Self.day, isDateStrong: isDateStrong),
                    effectiveURL: "http://cdn.test/same", crc: crc)
            ])
        }
    }

    private func held(_ worker: inout TestWorker) async throws -> HeldFile? {
        let lease = try #require(try await worker.claim(1).first)
        return lease.have
    }

    @Test func firstLeaseNamesAFileOfTheSameSource() async throws {
        try await StoreFixture.run { fixture in
            var worker = try await fixture.makeWorker()
            try await makeGroup("first", on: fixture)
            #expect(try await held(&worker) == nil)
            try await fixture.expire(worker.session)
            worker = try await fixture.makeWorker()
            try await fixture.set("ready_chunks", "deaths", to: 0)
            try await fetch(&worker, digests: #"{"sha256": "ab"}"#)
            try await makeGroup("second", on: fixture)
            // The first group's file was put in place even though a lease of it had been lost.
            let lease = try #require(try await worker.claimWork().first)
            let have = try #require(lease.have)
            let known = Representation(size: 80, etag: "\"1\"", lastModified: Self.day, isDateStrong: false)
            #expect(
                have
                    == HeldFile(
                        path: "first/t", representation: known, crc: 9, digests: ["sha256": "ab"],
                        effectiveURL: "http://cdn.test/same"))
            try await worker.store.report(finished: [
                .init(
                    session: worker.session, lease: lease.name, size: 80, digests: "{}", representation: known,
                    effectiveURL: nil, crc: 9, reusedFrom: "first/t")
            ])
            try await fixture.check()
            let group = try await fixture.store.group("second")
            #expect(group.state == .succeeded && group.bytesDone == 80 && group.bytesTotal == 80)
            // No bytes were transferred, so that the measured rate stays zero.
            #expect(group.bytesPerSecond == 0)
            let flow = try await fixture.originFlow()
            #expect(flow[0] == 80)
            // The origin has answered nevertheless: while it does, other tasks are not given up as if it were gone.
            #expect(flow[1] == 2)
            #expect(try await fixture.store.task("t", of: "second").reusedFrom == "first/t")
            #expect(try await fixture.told("task.succeeded", "reusedFrom") == [nil, "first/t"])
            // The charge is that of a request.
            #expect(try await fixture.served("second") - 16_384 < 16_384)
            // From now on the newest file is named; after its deletion, the other one.
            try await makeGroup("third", on: fixture)
            #expect(try await held(&worker)?.path == "second/t")
            _ = try await fixture.store.remove("second", keys: nil, deletingFiles: true)
            try await makeGroup("fourth", on: fixture)
            let leases = try await worker.claim(8).filter { $0.kind == .fetch }
            #expect(leases.allSatisfy { $0.have?.path == "first/t" } && leases.count == 1)
        }
    }

    /// The ways in which a later task or its group may make another request than the earlier one.
    enum Difference: String, CaseIterable, Sendable {
        case url, sink, headers, options, groupOptions, anew, decode, digest, size, names, resolver, off, scheme
        /// Whether a strong ETag makes the requests equivalent: no other representation of the URL has that tag.
        var isSettledByATag: Bool { [.headers, .options, .groupOptions, .anew].contains(self) }
    }

    @Test(arguments: Difference.allCases, [true, false])
    func fileOfAnotherRequestIsNamedOnlyForAStrongTag(difference: Difference, hasTag: Bool) async throws {
        try await StoreFixture.run { fixture in
            var worker = try await fixture.makeWorker(sinks: ["sink", "other"])
            let url = difference == .scheme ? "ftp://a.test/same" : "http://a.test/same"
            try await makeGroup("first", on: fixture, urls: [url])
            try await fetch(&worker, etag: hasTag ? "\"1\"" : "W/\"1\"", isDateStrong: true, digests: #"{"md5": "00"}"#)
            switch difference {
            case .anew:
                _ = try await fixture.store.change("first", GroupChange(options: .set(#"{"cookies": {"a": "b"}}"#)))
                try await makeGroup("second", on: fixture, groupOptions: #"{"cookies": {"a": "b"}}"#)
            case .decode: try await makeGroup("second", on: fixture, groupOptions: #"{"decode": true}"#)
            case .url: try await makeGroup("second", on: fixture, urls: ["http://a.test/same?1"])
            case .sink: try await makeGroup("second", on: fixture, sink: "other")
            case .headers: try await makeGroup("second", on: fixture, headers: #"{"Accept": "text/html"}"#)
            case .options: try await makeGroup("second", on: fixture, options: #"{"cookies": {"a": "b"}}"#)
            case .groupOptions: try await makeGroup("second", on: fixture, groupOptions: #"{"cookies": {"a": "b"}}"#)
            case .digest: try await makeGroup("second", on: fixture, digests: #"{"md5": "01"}"#)
            case .size: try await makeGroup("second", on: fixture, size: 81)
            case .names: try await makeGroup("second", on: fixture, policy: #"{"names": "suggested"}"#)
            case .resolver: try await makeGroup("second", on: fixture, resolver: #"{"url": "http://r.test/"}"#)
            case .off: try await makeGroup("second", on: fixture, reuses: false)
            case .scheme: try await makeGroup("second", on: fixture, urls: [url])
            }
            #expect(try await (held(&worker) != nil) == (hasTag && difference.isSettledByATag))
        }
    }

    /// What an earlier file may lack that is needed to revalidate and check it.
    enum Lack: CaseIterable, Sendable {
        case checksum, validator, bytes, switchedOn, firstSource
    }

    @Test(arguments: Lack.allCases)
    func fileThatCannotBeRevalidatedOrCheckedIsNotNamed(lack: Lack) async throws {
        try await StoreFixture.run { fixture in
            var worker = try await fixture.makeWorker()
            try await makeGroup("first", on: fixture, reuses: lack != .switchedOn)
            switch lack {
            case .checksum: try await fetch(&worker, crc: nil)
            case .validator: try await fetch(&worker, etag: nil, isDateStrong: false)
            case .bytes: try await fetch(&worker, size: 0)
            case .switchedOn: try await fetch(&worker)
            case .firstSource:
                // The version was learned from another mirror, whose tags mean nothing at the first source.
                try await fixture.set("tasks", "source", to: 1)
                try await fetch(&worker)
            }
            try await makeGroup("second", on: fixture)
            #expect(try await held(&worker) == nil)
            try await fixture.check()
        }
    }

    @Test func strongDateIsEnoughForReuse() async throws {
        try await StoreFixture.run { fixture in
            var worker = try await fixture.makeWorker()
            try await makeGroup("first", on: fixture)
            try await fetch(&worker, etag: nil, isDateStrong: true)
            try await makeGroup("second", on: fixture)
            #expect(try await held(&worker)?.representation.isDateStrong == true)
        }
    }

    @Test func laterLeasesOfATaskNameNoFile() async throws {
        try await StoreFixture.run { fixture in
            var worker = try await fixture.makeWorker()
            try await makeGroup("first", on: fixture)
            try await fetch(&worker)
            try await makeGroup("second", on: fixture)
            let first = try #require(try await worker.claim(1).first)
            #expect(first.have != nil)
            // The content has changed since: the task is planned and fetched as usual.
            try await worker.learn(first, size: 250, etag: "\"2\"")
            let rest = try await worker.claim(8)
            #expect(rest.count == 2 && rest.allSatisfy { $0.have == nil })
            try await worker.release(first, at: 50)
            let again = try await worker.claim(1)
            #expect(again.map(\.start) == [0] && again[0].have == nil)
        }
    }

    /// Row 27: the file in the sink is compared with what a mirror serves.
    @Test func fileIsNamedToTheLeaseOfAMirrorToo() async throws {
        try await StoreFixture.run { fixture in
            var worker = try await fixture.makeWorker()
            let urls = ["http://a.test/same", "http://b.test/same"]
            try await makeGroup("first", on: fixture, urls: urls)
            try await fetch(&worker)
            try await makeGroup("second", on: fixture, urls: urls)
            let first = try #require(try await worker.claim(1).first)
            try await worker.fail(first, .httpStatus(404), status: 404)
            let second = try #require(try await worker.claim(1).first)
            #expect(second.source == 1 && second.have?.path == "first/t" && second.have == first.have)
        }
    }

    @Test func taskWhoseWorkerDiedIsNamedTheFileOnceMoreAndThenFetches() async throws {
        try await StoreFixture.run { fixture in
            var worker = try await fixture.makeWorker()
            try await makeGroup("first", on: fixture)
            try await fetch(&worker)
            try await makeGroup("second", on: fixture)
            for death in 0..<3 {
                var other = try await fixture.makeWorker("other")
                let lease = try #require(try await other.claim(1).first)
                #expect((lease.have != nil) == (death < 2), "after \(death) deaths")
                try await fixture.expire(other.session)
            }
        }
    }

    @Test func aMatchingFileIsFoundBehindManyOthers() async throws {
        try await StoreFixture.run { fixture in
            var worker = try await fixture.makeWorker()
            try await makeGroup("first", on: fixture)
            try await fetch(&worker)
            for number in 0..<10 {
                try await makeGroup("changed-\(number)", on: fixture)
                try await fetch(&worker, etag: "\"2\"", size: 81)
            }
            try await makeGroup("second", on: fixture, size: 80)
            #expect(try await held(&worker)?.path == "first/t")
        }
    }

    /// A file that was finished in several chunks is checked as a whole, by the checksum that its finalizer reports.
    @Test func fileOfSeveralChunksIsNamed() async throws {
        try await StoreFixture.run { fixture in
            var worker = try await fixture.makeWorker()
            try await makeGroup("first", on: fixture)
            let first = try #require(try await worker.claim(1).first)
            try await worker.learn(first, size: 250)
            for lease in try await worker.claim(8) + [first] { try await worker.done(lease) }
            try await fetch(&worker, etag: nil, size: 250)
            try await makeGroup("second", on: fixture)
            let have = try await held(&worker)
            #expect(have?.representation.size == 250 && have?.representation.etag == "\"1\"" && have?.crc == 9)
            try await fixture.check()
        }
    }
}
