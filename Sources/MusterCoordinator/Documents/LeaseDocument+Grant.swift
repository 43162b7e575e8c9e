import MusterAPI
import MusterCore
import MusterStore

extension LeaseDocument {
    /// A lease as its worker gets it, with the secrets that the worker needs for it.
    ///
    /// - Throws: `StoredValueError` when its terms can't be read: then it is unknown how to ask its source.
    init(_ lease: GrantedLease) throws {
        let terms = try LeaseTerms(lease)
        self.init(name: lease.name, kind: lease.kind, task: lease.task, sink: lease.sink, path: lease.path)
        version = lease.version
        start = lease.start
        end = lease.end
        planned = lease.isPlanned
        rung = lease.rung
        fenced = lease.isFenced
        resume = lease.resume
        representation = lease.representation
        expectedSize = lease.expectedSize
        expectedDigests = try StoredJSON.texts(
            lease.expectedDigests, column: "tasks.expected_digests", of: "task \(lease.task)")
        source = terms.source
        chunks = lease.chunks
        options = terms.options
        if let round = lease.round { options = (options ?? FetchOptions()).withPatience(inRound: round) }
        if lease.slowTries > 0 { options = (options ?? FetchOptions()).withPatience(after: lease.slowTries) }
        policy = try StoredJSON.document(
            TransferPolicy.self, ifAny: lease.policy, column: "groups.policy", of: "group \(lease.group)")
        contentType = lease.contentType
        // Set only where true.
        if lease.isOtherMirror { isOtherMirror = true }
        if lease.asksForAll { asksForAll = true }
        if lease.mayMoveOn { mayMoveOn = true }
        reach = lease.reach
        pace = lease.pace
        if !lease.revoke.isEmpty { revoke = lease.revoke }
        if lease.kind == .fetch || lease.kind == .trial {
            group = lease.group
            origin = lease.origin
            have = lease.have
            lane = lease.lane
            earlier = lease.earlier
            if lease.isLastTry { isLastTry = true }
            looks = lease.looks
        }
        guard lease.kind == .resolve else { return }
        resolver = try StoredJSON.document(
            Resolver.self, ifAny: lease.resolver, column: "groups.resolver", of: "group \(lease.group)")
        question = lease.url.map {
            ResolverQuestion(
                group: lease.group, key: lease.key, url: $0, source: lease.source,
                status: lease.failureStatus.map(Int.init))
        }
    }
}

/// How the source of a lease is asked: the settings of the group, the task and the resolver together.
struct LeaseTerms {
    /// The source; absent for work that fetches nothing.
    let source: LeaseSource?
    /// The task's options, which override its group's.
    let options: FetchOptions?

    init(_ lease: GrantedLease) throws {
        let row = "task \(lease.task)"
        let source = "source \(lease.source) of \(row)"
        try self.init(
            ordinal: lease.source, url: lease.url,
            headers: StoredJSON.texts(lease.headers, column: "sources.headers", of: source), freshURL: lease.freshURL,
            freshHeaders: StoredJSON.texts(lease.freshHeaders, column: "sources.fresh_headers", of: source),
            options: StoredJSON.document(
                FetchOptions.self, ifAny: lease.taskOptions, column: "tasks.fetch_options", of: row),
            defaults: StoredJSON.document(
                FetchOptions.self, ifAny: lease.groupOptions, column: "groups.fetch_options", of: "group \(lease.group)"
            ))
    }

    /// - Parameters:
    ///   - url: the URL with which the task was added.
    ///   - headers: the task's own header fields.
    ///   - freshURL: the URL that the resolver gave in its place.
    ///   - freshHeaders: the header fields that belong to `freshURL`; they override the task's own, name by name.
    ///   - options: the task's options.
    ///   - defaults: the options of its group.
    /// - Throws: `StoredValueError` when a URL is invalid: then it is unknown which origin the headers are for.
    init(
        ordinal: Int32, url: String?, headers: [String: String], freshURL: String?, freshHeaders: [String: String],
        options: FetchOptions?, defaults: FetchOptions?
    ) throws(StoredValueError) {
        var options = options.map { $0.over(defaults ?? FetchOptions()) } ?? defaults
        var own = headers
        if let url, let freshURL, options?.locationTrusted != true,
            try Self.origin(url, column: "sources.url", ordinal)
                != Self.origin(freshURL, column: "sources.fresh_url", ordinal)
        {
            // Header fields and secrets for one origin are not sent to another origin that only the resolver named (range
            // contract, row 20). The resolver's header fields are what is needed there.
            own = [:]
            options?.headers = nil
            options?.cookies = nil
            options?.cookieFile = nil
            options?.credentials = nil
        }
        let replaced = Set(freshHeaders.keys.map { $0.lowercased() })
        own = own.filter { !replaced.contains($0.key.lowercased()) }.merging(freshHeaders) { $1 }
        source = (freshURL ?? url).map { LeaseSource(ordinal: ordinal, url: $0, headers: own) }
        self.options = options
    }

    private static func origin(
        _ url: String, column: String, _ ordinal: Int32
    ) throws(StoredValueError) -> String {
        do {
            return try SourceURL(validating: url).origin
        } catch {
            throw StoredValueError(
                column: column, row: "source \(ordinal)", requested: "\(SourceURL.self)", problem: "it is no URL")
        }
    }
}
