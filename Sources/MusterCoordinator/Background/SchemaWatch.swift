import Logging
import MusterPostgres
import MusterStore
import ServiceLifecycle
import Synchronization

/// Stops the coordinator when its database has been migrated to another build (`adr/0016`), and keeps it from going back to a
/// former primary.
///
/// After a failover the former primary may be started again as it was. A coordinator whose connection string names it first
/// would then write to two databases at once. So a coordinator uses no timeline that is older than one that it has used.
final class SchemaWatch: Service {
    private let (refusals, door) = AsyncStream.makeStream(of: SchemaRefusal.self, bufferingPolicy: .bufferingOldest(1))
    private let seen = Mutex(Seen())
    private let logger: Logger

    private struct Seen {
        /// The newest timeline that a connection has led to.
        var newest: DatabaseTimeline?
        /// The former primaries that were logged.
        var former: Set<DatabaseTimeline> = []
    }

    init(logger: Logger) { self.logger = logger }

    /// Admits a connection to the pool, or rejects it. After a `SchemaRefusal` the coordinator stops; a standby and a former
    /// primary count as `unreachable`.
    func enter(_ connection: PostgresConnection) async throws {
        do {
            try await SchemaFence.enter(connection) { try self.note($0) }
        } catch let refusal as SchemaRefusal {
            door.yield(refusal)
            throw refusal
        }
    }

    /// Rejects another connection if it leads to a standby or a former primary, as `unreachable`.
    func admit(_ connection: PostgresConnection) async throws {
        try note(try await SchemaFence.timeline(of: connection))
    }

    /// Remembers the newest timeline, and throws for an older one. The first time, the operator is told in the log.
    func note(_ timeline: DatabaseTimeline) throws(PostgresError) {
        let (known, isNew) = seen.withLock { seen -> (DatabaseTimeline, Bool) in
            let known = seen.newest ?? timeline
            guard timeline.isOlder(than: known) else {
                // Another cluster is a dump that was loaded elsewhere, or the same one after an upgrade of PostgreSQL.
                seen.newest = timeline
                return (known, false)
            }
            return (known, seen.former.insert(timeline).inserted)
        }
        guard timeline.isOlder(than: known) else { return }
        let error = PostgresError.connection(
            .init(
                kind: .unreachable,
                message: "the server is a former primary: the database has gone on from its timeline "
                    + "\(timeline.number) to timeline \(known.number)"))
        if isNew { logger.error("two primaries at once", metadata: [CoordinatorMetadata.error: "\(error)"]) }
        throw error
    }

    /// Waits until a connection is rejected, or the coordinator stops.
    ///
    /// - Throws: the refusal.
    func run() async throws {
        let refusal = await cancelWhenGracefulShutdown { [refusals] in await refusals.first { _ in true } }
        if let refusal { throw refusal }
    }
}
