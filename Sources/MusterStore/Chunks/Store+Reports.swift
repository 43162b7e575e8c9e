public import MusterCore
import MusterPostgres

/// What a worker says about leases, as far as many such reports make one statement.
public enum LeaseReport {
    /// The durable prefix of a chunk grew.
    public struct Progress: Sendable {
        /// Who reports.
        public let session: SessionID
        /// The lease.
        public let lease: LeaseName
        /// How far it is.
        public let durable: DurablePrefix

        /// A report.
        public init(session: SessionID, lease: LeaseName, durable: DurablePrefix) {
            self.session = session
            self.lease = lease
            self.durable = durable
        }
    }

    /// A chunk is durable to its end, or a purge is done.
    public struct Done: Sendable {
        /// Who reports.
        public let session: SessionID
        /// The lease.
        public let lease: LeaseName
        /// CRC32C of the whole chunk.
        public let crc: UInt32

        /// A report.
        public init(session: SessionID, lease: LeaseName, crc: UInt32) {
            self.session = session
            self.lease = lease
            self.crc = crc
        }
    }

    /// A file stands at its path (I8).
    public struct Finished: Sendable {
        /// Who reports.
        public let session: SessionID
        /// The lease.
        public let lease: LeaseName
        /// The file's size.
        public let size: Int64
        /// Its digests, as a JSON object.
        public let digests: String
        /// What the responses said, when this lease saw one.
        public let representation: Representation?
        /// Where it came from, after redirects.
        public let effectiveURL: String?

        /// A report.
        public init(
            session: SessionID, lease: LeaseName, size: Int64, digests: String, representation: Representation?,
            effectiveURL: String?
        ) {
            self.session = session
            self.lease = lease
            self.size = size
            self.digests = digests
            self.representation = representation
            self.effectiveURL = effectiveURL
        }
    }

    /// A lease could not be fulfilled.
    public struct Failed: Sendable {
        /// The lease, and how far it is.
        public let progress: Progress
        /// The kind.
        public let kind: FailureKind
        /// What was seen.
        public let detail: String
        /// Which source it was.
        public let source: Int32?
        /// The origin's Retry-After, in seconds.
        public let retryAfter: Int64?

        /// A report.
        public init(progress: Progress, kind: FailureKind, detail: String, source: Int32?, retryAfter: Int64?) {
            self.progress = progress
            self.kind = kind
            self.detail = detail
            self.source = source
            self.retryAfter = retryAfter
        }
    }
}

extension Store {
    /// Moves durable offsets forward (I4). Returns the leases that are not their reporters' any more.
    public func report(progress reports: [LeaseReport.Progress]) async throws -> [LeaseReport.Progress] {
        guard !reports.isEmpty else { return [] }
        let rows = try await query(
            """
            SELECT n FROM report_progress(\(reports.map(\.session)), \(reports.map(\.lease.chunk)),
                \(reports.map(\.lease.epoch)), \(reports.map(\.durable.offset)), \(reports.map { Int64($0.durable.crc) })) AS n
            """)
        return try rows.map { reports[Int(try $0.decode("n", as: Int32.self)) - 1] }
    }

    /// What the first response to a task taught; plans the rest (I3). Returns whether the lease is still the reporter's.
    public func report(
        learned representation: Representation, isSplittable: Bool, effectiveURL: String?, chunkSize: Int64,
        session: SessionID, lease: LeaseName
    ) async throws -> Bool {
        try await query(
            """
            SELECT report_learned(\(session), \(lease.chunk), \(lease.epoch), \(representation.size), \(representation.etag),
                \(representation.lastModified), \(effectiveURL), \(isSplittable), \(chunkSize)) AS held
            """)[0].decode("held")
    }

    /// Records chunks that are durable to their end, and purges that are done.
    public func report(done reports: [LeaseReport.Done]) async throws {
        guard !reports.isEmpty else { return }
        _ = try await query(
            """
            SELECT report_done(\(reports.map(\.session)), \(reports.map(\.lease.chunk)), \(reports.map(\.lease.epoch)),
                \(reports.map { Int64($0.crc) }))::text
            """)
    }

    /// Records files that stand at their paths, with events and counts, and closes groups (I6, I7).
    public func report(finished reports: [LeaseReport.Finished]) async throws {
        guard !reports.isEmpty else { return }
        _ = try await query(
            """
            SELECT report_finished(\(reports.map(\.session)), \(reports.map(\.lease.chunk)), \(reports.map(\.lease.epoch)),
                \(reports.map(\.size)), \(reports.map { PostgresJSON($0.digests) }), \(reports.map { $0.representation?.etag }),
                \(reports.map { $0.representation?.lastModified }), \(reports.map(\.effectiveURL)))::text
            """)
    }

    /// Takes back leases that their holder gives up, having stopped writing.
    public func report(released reports: [LeaseReport.Progress], session: SessionID) async throws {
        guard !reports.isEmpty else { return }
        _ = try await query(
            """
            SELECT report_released(\(session), \(reports.map(\.lease.chunk)), \(reports.map(\.lease.epoch)),
                \(reports.map(\.durable.offset)), \(reports.map { Int64($0.durable.crc) }), \(policy.firstChunk),
                \(policy.deaths))::text
            """)
    }

    /// Deals with a lease that could not be fulfilled, by the rule of its kind (I12). `random`, within `0..<1`, sets the jitter.
    public func report(failed report: LeaseReport.Failed, random: Double) async throws {
        let progress = report.progress
        _ = try await query(
            """
            SELECT report_failed(\(progress.session), \(progress.lease.chunk), \(progress.lease.epoch),
                \(progress.durable.offset), \(Int64(progress.durable.crc)), \(Self.name(report.kind.rule)),
                \(report.kind.rawValue), \(report.detail), \(report.source), \(report.retryAfter), \(random),
                \(policy.firstChunk), \(policy.attempts), \(policy.contentVersions), \(policy.deaths))::text
            """)
    }

    /// Starts a task over as one stream.
    public func report(restart lease: LeaseName, detail: String, session: SessionID) async throws {
        _ = try await query(
            """
            SELECT report_restart(\(session), \(lease.chunk), \(lease.epoch), \(detail), \(policy.firstChunk),
                \(policy.attempts))::text
            """)
    }

    private static func name(_ rule: FailureKind.Rule) -> String {
        switch rule {
        case .retry: "retry"
        case .nextSource: "nextSource"
        case .giveUp: "giveUp"
        case .startOver: "startOver"
        case .returnChunk: "returnChunk"
        }
    }
}
