import MusterAPI
import MusterCore
import MusterTestSupport
import Testing

@testable import MusterWorker

/// A request that is refused for its manner of asking is made in another manner at once, and the worker remembers the manner
/// for the origin (range contract, rows 13, 22b and 28).
@Suite struct MannerTests {
    private let file = ScriptedOrigin.File(.seeded(seed: 53, size: 9 * mebibyte))

    private func paths(_ origin: ScriptedOrigin, _ path: String) -> [ScriptedOrigin.Request] {
        origin.requests.filter { $0.path == path }
    }

    private func lease(_ origin: ScriptedOrigin, _ name: String, task: Int64) -> LeaseDocument {
        var lease = LeaseDocument.first(origin.url("/\(name)"), task: task, path: name)
        lease.end = 16 * mebibyte
        return lease
    }

    @Test(arguments: [400, 401, 404])
    func secondRequestOfAConnectionThatIsRefusedIsMadeOnANewOne(status: Int) async throws {
        try await withBench { bench, origin in
            for name in ["a", "b", "c"] { origin.serve("/\(name)", file) }
            for name in ["b", "c"] {
                origin.misbehave("/\(name)", .status(status, retryAfter: nil), when: .firstConnections(1))
            }
            for (task, name) in [(1, "a"), (2, "b"), (3, "c")] as [(Int64, String)] {
                let ending = await bench.run(lease(origin, name, task: task))
                #expect(ending.finished?.size == 9 * mebibyte, "\(ending)")
            }
            #expect(paths(origin, "/b").map(\.status) == [status, 206])
            #expect(Set(paths(origin, "/b").map(\.connection)).count == 2)
            #expect(paths(origin, "/c").map(\.status) == [206])
        }
    }

    /// Ranges are refused on new connections too, which says nothing of the plain GET.
    @Test func plainGETThatIsRefusedOnAUsedConnectionIsMadeOnANewOne() async throws {
        try await withBench { bench, origin in
            for (task, name) in [(1, "a"), (2, "b")] as [(Int64, String)] {
                origin.serve("/\(name)", file)
                origin.misbehave("/\(name)", .status(403, retryAfter: nil), when: .firstConnections(1))
                var lease = lease(origin, name, task: task)
                lease.asksForAll = true
                let ending = await bench.run(lease)
                #expect(ending.finished?.size == 9 * mebibyte, "\(ending)")
            }
            #expect(paths(origin, "/a").map(\.status) == [403, 403, 200])
            #expect(paths(origin, "/b").map(\.status) == [206])
        }
    }

    @Test func refusalThatComesOnANewConnectionTooIsBelieved() async throws {
        try await withBench { bench, origin in
            for name in ["a", "b", "c"] { origin.serve("/\(name)", file) }
            for name in ["b", "c"] { origin.misbehave("/\(name)", .status(404, retryAfter: nil)) }
            for (task, name) in [(1, "a"), (2, "b"), (3, "c")] as [(Int64, String)] {
                let ending = await bench.run(lease(origin, name, task: task))
                #expect((ending.failure?.kind == .notFound) == (name != "a"), "\(ending)")
            }
            // Once more on a new connection, and in turns with the first file.
            #expect(paths(origin, "/b").count == 2 + OriginWitnesses.turns)
            #expect(paths(origin, "/c").count == 1 + OriginWitnesses.turnsToBelieve - OriginWitnesses.turns)
        }
    }

    @Test func originThatRefusesIdentityIsAskedWithoutAWordOfCodings() async throws {
        try await withBench { bench, origin in
            origin.serve("/a", file)
            origin.serve("/b", file)
            origin.misbehave("/a", .status(406, retryAfter: nil), when: .first(1))
            for (task, name) in [(1, "a"), (2, "b")] as [(Int64, String)] {
                let ending = await bench.run(lease(origin, name, task: task))
                #expect(ending.finished?.size == 9 * mebibyte, "\(ending)")
            }
            #expect(origin.requests.map { $0.header("Accept-Encoding") } == ["identity", nil, nil])
            #expect(origin.requests.map(\.status) == [406, 206, 206])
        }
    }

    /// The job asks without `identity`, whatever the status, before a file fails for good.
    @Test(
        arguments: [(404, .refused, 1), (403, .refused, 2), (415, .refused, 2), (500, .failed, 2), (503, .failed, 2)]
            as [(Int, Look, Int)])
    func refusalOfTheLastTryMayBeForIdentity(status: Int, looks: Look, requests: Int) async throws {
        try await withBench { bench, origin in
            origin.serve("/a", file)
            origin.serve("/b", file)
            origin.misbehave("/a", .status(status, retryAfter: nil), when: .first(requests))
            // On used connections the job would ask once more first.
            bench.context.conduct.wants(Manner(isAlone: true), origin.url)
            for (task, name) in [(1, "a"), (2, "b")] as [(Int64, String)] {
                var lease = lease(origin, name, task: task)
                lease.asksForAll = true
                lease.looks = looks
                let ending = await bench.run(lease)
                #expect(ending.finished?.size == 9 * mebibyte, "\(ending)")
            }
            let codings = origin.requests.map { $0.header("Accept-Encoding") }
            #expect(codings == Array(repeating: "identity", count: requests) + [nil, nil])
        }
    }

    @Test func identityIsDoubtedOnceForAnOrigin() async throws {
        try await withBench { bench, origin in
            for (task, name) in [(1, "a"), (2, "b")] as [(Int64, String)] {
                origin.serve("/\(name)", file)
                origin.misbehave("/\(name)", .status(404, retryAfter: nil))
                var lease = lease(origin, name, task: task)
                lease.looks = .refused
                #expect(await bench.run(lease).failure?.kind == .notFound)
            }
            #expect(paths(origin, "/a").map { $0.header("Accept-Encoding") } == ["identity", nil])
            #expect(paths(origin, "/b").allSatisfy { $0.header("Accept-Encoding") == "identity" })
        }
    }

    @Test func requestThatIsBadOnAllRungsIsMadeWithoutAWordOfCodings() async throws {
        try await withBench { bench, origin in
            origin.serve("/a", file)
            origin.misbehave("/a", .status(400, retryAfter: nil), when: .having("Accept-Encoding"))
            let ending = await bench.run(lease(origin, "a", task: 1))
            #expect(ending.finished?.size == 9 * mebibyte, "\(ending)")
            #expect(origin.requests.last?.header("Accept-Encoding") == nil)
        }
    }

    @Test func sizeThatDoesNotFitHasToBeStatedByAPlainGETToo() async throws {
        try await withBench { bench, origin in
            origin.serve("/a", file)
            origin.misbehave("/a", .totalSize(1 << 49), when: .ranged)
            let ending = await bench.run(lease(origin, "a", task: 1))
            #expect(ending.finished?.size == 9 * mebibyte, "\(ending)")
            #expect(origin.requests.map(\.status) == [206, 200])
        }
        try await withBench { bench, origin in
            origin.serve("/a", file)
            origin.misbehave("/a", .totalSize(1 << 49), when: .ranged)
            origin.misbehave("/a", .contentLengthOff(by: 1 << 49), when: .init(hasRange: false))
            let ending = await bench.run(lease(origin, "a", task: 1))
            #expect(ending.failure?.kind == .noSpace, "\(ending)")
            #expect(ending.failure?.detail.contains("the whole file system has") == true, "\(ending)")
        }
    }

    /// A connection that has brought more than was announced is not used again: each request gets its own connection.
    @Test func originThatSendsMoreThanItAnnouncedGetsAConnectionForEachRequest() async throws {
        try await withBench { bench, origin in
            for (task, name) in [(1, "a"), (2, "b"), (3, "c"), (4, "d")] as [(Int64, String)] {
                origin.serve("/\(name)", file)
                origin.misbehave("/\(name)", .surplus(bytes: 100))
                let ending = await bench.run(lease(origin, name, task: task))
                #expect(ending.finished?.size == 9 * mebibyte, "\(ending)")
            }
            let served = ["/a", "/b", "/c", "/d"].map { paths(origin, $0).last?.connection }
            #expect(Set(served).count == 4)
            // One request on the same connection may have met the surplus of the first answer.
            #expect(origin.requests.count <= 5)
        }
    }
}
