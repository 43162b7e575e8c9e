import MusterCore
import MusterPostgres
import MusterStore

/// The answers of origins and resolvers that a worker reports.
extension TestWorker {
    /// Asks for work, and deletes old content versions on the way.
    mutating func claimWork(_ room: Int32 = 1) async throws -> [GrantedLease] {
        while true {
            let leases = try await claim(room)
            let purges = leases.filter { $0.kind == .purge }
            for purge in purges { try await done(purge) }
            if purges.isEmpty || purges.count < leases.count { return leases.filter { $0.kind != .purge } }
        }
    }

    /// Reports that the origin refused with a status.
    func refuse(
        _ lease: GrantedLease, _ status: Int, at offset: Int64? = nil, retryAfter: Int64? = nil, isLimit: Bool? = nil,
        isUnserved: Bool = false, isElsewhere: Bool = false,
        random: Double = 0.5
    ) async throws {
        try await store.report(
            failed: [
                .init(
                    progress: .init(
                        session: session, lease: lease.name,
                        durable: DurablePrefix(offset: offset ?? lease.start, crc: 7)),
                    kind: .status(status), detail: "status \(status)", source: lease.source, retryAfter: retryAfter,
                    status: Int32(status), requestID: "request-\(lease.name.epoch.rawValue)", address: "192.0.2.1",
                    isElsewhere: isElsewhere, isLimit: isLimit, isUnserved: isUnserved, random: random)
            ])
    }

    /// Reports the origin's first response, with all that it may state.
    @discardableResult
    func answer(
        _ lease: GrantedLease, size: Int64?, etag: String? = nil, digests: [String: String]? = nil, name: String? = nil,
        isSplittable: Bool = true, askedForAll: Bool = false, chunkSize: Int64 = 100
    ) async throws -> Bool {
        try await store.report(
            learned: .init(
                session: session, lease: lease.name,
                representation: Representation(size: size, etag: etag, isDateStrong: true, digests: digests),
                rung: isSplittable ? lease.rung : .whole, effectiveURL: nil, suggestedName: name,
                askedForAll: askedForAll, chunkSize: chunkSize))
    }

    /// Reports that the origin served another request for a file (row 22).
    func servedAgain(_ lease: GrantedLease) async throws {
        try await store.report(servedAgain: lease.name, session: session)
    }

    /// Reports that the resolver gave a fresh URL.
    func resolve(_ lease: GrantedLease, to origin: String = "fresh", headers: String? = nil) async throws {
        try await store.report(
            resolved: .init(
                session: session, lease: lease.name, url: "http://\(origin).test/t?signature=1",
                origin: "http://\(origin).test:80", headers: headers))
    }
}

/// State that tests of sources check.
extension StoreFixture {
    /// A group with a resolver that gives fresh URLs for expired ones.
    func makeResolvedGroup(_ name: String, _ tasks: [Wanted], isSealed: Bool = false) async throws {
        try await makeGroup(name, tasks, isSealed: isSealed, resolver: #"{"url": "http://resolver.test/"}"#)
    }

    /// Makes every task expect a digest.
    func expectDigests() async throws {
        try await run(#"UPDATE tasks SET expected_digests = '{"md5": "00000000000000000000000000000000"}'"#)
    }

    /// The chunks without a lease, except purges: `kind first source status attempts`.
    func chunks() async throws -> [String] {
        try await values(
            """
            SELECT concat_ws(' ', kind, first, source, status, attempts) FROM ready_chunks WHERE kind <> 'purge'
            ORDER BY kind, first
            """)
    }

    /// The content versions to be deleted.
    func purgedVersions() async throws -> [Int32] {
        try await values("SELECT version FROM ready_chunks WHERE kind = 'purge' ORDER BY version")
    }

    /// The recorded outcomes of the failures so far.
    func outcomes() async throws -> [String] { try await values("SELECT outcome FROM attempts ORDER BY serial") }
}
