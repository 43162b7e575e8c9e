import CLibpq
public import Logging
import Synchronization

/// One connection to PostgreSQL.
///
/// The actor runs on a thread of its own, where libpq may wait without holding up any thread of Swift's pool. One
/// statement runs at a time. Tasks that share a connection share its transaction too, so take a connection from a
/// `PostgresPool` instead. Notices of the server go to the log at debug level.
public actor PostgresConnection {
    private nonisolated let thread: ConnectionThread
    nonisolated let interruption: Interruption
    nonisolated let condition = ConnectionCondition()
    nonisolated let logger: Logger
    /// What the connection was opened with.
    public nonisolated let configuration: PostgresConfiguration

    /// `nil` once the connection is closed or broken.
    var handle: ConnectionHandle?
    var statements: StatementCache
    /// How the connection is being used, as far as the outcome of a statement depends on it.
    var usage = Usage.statements

    enum Usage: Equatable {
        /// Single statements, or transactions that the caller runs by hand. Exits to any other.
        case statements
        /// Within `withTransaction`, before COMMIT is sent: a lost connection means a rollback. Exits to `statements`.
        case transaction
        /// A COPY takes rows; only `copyIn` may use the connection. Exits to what it was before.
        case copy(withinTransaction: Bool)
    }

    /// The connection's thread is its executor.
    public nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

    private init(_ configuration: PostgresConfiguration, logger: Logger) throws {
        thread = try ConnectionThread()
        do {
            interruption = try Interruption()
        } catch {
            thread.stop()
            throw error
        }
        self.configuration = configuration
        self.logger = logger
        statements = StatementCache(limit: configuration.preparedStatementLimit)
    }

    deinit {
        thread.stop()
    }

    /// Connects to the first server of the configuration that accepts the connection, and that `admit` accepts.
    ///
    /// - Parameters:
    ///   - deadline: When to give up; the remaining hosts share the time until then equally, so that a host that does not answer
    ///     leaves time for the others. Each host has at most `connectTimeout`.
    ///   - admit: Is run on a new connection. If it throws an error of the kind `unreachable`, the next host is tried; any other
    ///     error ends the attempt.
    /// - Throws: `PostgresError.connection`, what `admit` throws, or `CancellationError`. Name resolution cannot be interrupted.
    public static func open(
        _ configuration: PostgresConfiguration,
        logger: Logger = Logger(label: "muster.postgres"),
        deadline: ContinuousClock.Instant? = nil,
        admit: @Sendable (PostgresConnection) async throws -> Void = { _ in }
    ) async throws -> PostgresConnection {
        let targets = try ConnectionTarget.all(of: configuration)
        var failure = PostgresError.Connection(kind: .badConfiguration, message: "no host")
        for (index, target) in targets.enumerated() {
            let connection = try PostgresConnection(configuration, logger: logger)
            let end = ConnectionTarget.end(
                of: targets.count - index, within: configuration.connectTimeout, until: deadline, now: .now)
            do {
                try await connection.connect(to: target, deadline: end)
                try await admit(connection)
                return connection
            } catch PostgresError.connection(let refusal) where refusal.kind == .unreachable {
                await connection.close()
                failure = refusal
            } catch {
                await connection.close()
                throw error
            }
        }
        throw PostgresError.connection(failure)
    }

    /// Closes the connection. A running statement ends first, since statements run one after the other.
    public func close() {
        handle = nil
        condition.set(.broken)
    }

    /// Whether the connection can still be used, as far as is known without asking the server.
    public nonisolated var isOpen: Bool { condition.current != .broken }

    /// The process of the server behind this connection, as `pg_backend_pid()` says.
    public var backendPID: Int32? { handle?.backendPID }
}

/// What is known of a connection without going to its thread.
final class ConnectionCondition: Sendable {
    enum Condition: Sendable {
        /// It can be lent.
        case idle
        /// A transaction is open, or failed and not yet rolled back.
        case inTransaction
        /// A statement that may be committing has no answer yet, and its caller has given up. Exits to `idle` or `broken`.
        case unanswered
        /// It works, but leads to a server that cannot take writes any more: it should be given up once it is free.
        case retiring
        /// It is closed.
        case broken
    }

    private let state = Mutex(Condition.idle)

    var current: Condition { state.withLock { $0 } }

    /// Notes a change. `broken` is final, and `retiring` changes only to `broken`.
    func set(_ new: Condition) {
        state.withLock { state in
            switch state {
            case .idle, .inTransaction, .unanswered: state = new
            case .retiring: if new == .broken { state = new }
            case .broken: break
            }
        }
    }
}
