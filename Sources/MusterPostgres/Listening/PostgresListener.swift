public import Logging
public import MusterSystem

/// An event of a listener.
public enum PostgresListenerEvent: Sendable, Hashable {
    /// Listening has begun: notifications from now on will be received. Look once for earlier changes.
    case listening
    /// The connection had been lost and is there again: notifications may have been missed, so look again (fault F14).
    case reconnected
    /// A notification arrived.
    case notification(PostgresNotification)
}

/// Listens to channels on a connection of its own, and connects again, with backoff, whenever the connection is lost.
///
///     for await event in PostgresListener(configuration, channels: ["work"]) { … }
///
/// It works only while it is asked for the next event: there is no task to be stopped. The sequence ends when the task
/// that iterates is cancelled. A server that hangs is noticed by a small query every `checkInterval`.
public struct PostgresListener: AsyncSequence, Sendable {
    /// What the sequence yields.
    public typealias Element = PostgresListenerEvent
    /// The listener recovers from failures instead of throwing them.
    public typealias Failure = Never

    private let configuration: PostgresConfiguration
    private let channels: [String]
    private let backoff: Backoff
    private let checkInterval: Duration
    private let timing: PostgresTiming
    private let logger: Logger
    private let admit: @Sendable (PostgresConnection) async throws -> Void

    /// Prepares to listen; nothing happens before the first event is asked for.
    ///
    /// - Parameter admit: Is run on every new connection, as by `PostgresConnection.open`. When it throws, the listener tries
    ///   again later.
    public init(
        _ configuration: PostgresConfiguration,
        channels: [String],
        backoff: Backoff = .connecting,
        checkInterval: Duration = .seconds(15),
        timing: PostgresTiming = .system,
        logger: Logger = Logger(label: "muster.postgres"),
        admit: @escaping @Sendable (PostgresConnection) async throws -> Void = { _ in }
    ) {
        self.configuration = configuration
        self.admit = admit
        self.channels = channels
        self.backoff = backoff
        self.checkInterval = checkInterval
        self.timing = timing
        self.logger = logger
    }

    /// Starts listening, with a connection of its own for each iterator.
    public func makeAsyncIterator() -> Iterator {
        Iterator(listener: self)
    }

    /// The iterator over events. Dropping it closes the connection.
    public struct Iterator: AsyncIteratorProtocol {
        private enum State {
            /// Not connected; `failures` attempts failed since the last connection. Exits: `connected`.
            case disconnected(failures: Int)
            /// Listening. Exits: `disconnected`.
            case connected(PostgresConnection)
        }

        private let listener: PostgresListener
        private var state = State.disconnected(failures: 0)
        private var wasConnected = false
        private var heard: [PostgresNotification] = []
        private var nextHeard = 0

        fileprivate init(listener: PostgresListener) {
            self.listener = listener
        }

        /// Waits for the next event; `nil` when the task is cancelled.
        public mutating func next(isolation actor: isolated (any Actor)?) async -> PostgresListenerEvent? {
            while true {
                if nextHeard < heard.count {
                    defer { nextHeard += 1 }
                    return .notification(heard[nextHeard])
                }
                guard !Task.isCancelled else { return nil }
                switch state {
                case .disconnected(let failures):
                    if let event = await connect(failures: failures) { return event }
                case .connected(let connection):
                    await listen(connection)
                }
            }
        }

        /// Waits for the next event; `nil` when the task is cancelled.
        public mutating func next() async -> PostgresListenerEvent? {
            await next(isolation: nil)
        }

        private nonisolated(nonsending) mutating func connect(failures: Int) async -> PostgresListenerEvent? {
            let timing = listener.timing
            if failures > 0 {
                let delay = listener.backoff.delay(failures: failures, random: timing.random())
                do {
                    try await timing.sleep(timing.now() + delay)
                } catch {
                    return nil
                }
            }
            do {
                let connection = try await PostgresConnection.open(
                    listener.configuration, logger: listener.logger, admit: listener.admit)
                for channel in listener.channels {
                    try await connection.query("LISTEN \(identifier: channel)")
                }
                state = .connected(connection)
            } catch {
                state = .disconnected(failures: failures + 1)
                if !Task.isCancelled {
                    // Only the first failure is a warning.
                    listener.logger.log(
                        level: failures == 0 ? .warning : .debug, "PostgreSQL listener cannot connect",
                        metadata: [LogKey.error: "\(error)"])
                }
                return nil
            }
            defer { wasConnected = true }
            return wasConnected ? .reconnected : .listening
        }

        private nonisolated(nonsending) mutating func listen(_ connection: PostgresConnection) async {
            do {
                heard = try await connection.notifications(until: .now + listener.checkInterval)
                nextHeard = 0
                if heard.isEmpty {
                    // Silence may mean that there was no notification, or that the server is gone.
                    let deadline = ContinuousClock.now + listener.configuration.connectTimeout
                    try await connection.query("SELECT 1", deadline: deadline)
                }
            } catch {
                guard !Task.isCancelled else { return }
                listener.logger.warning("PostgreSQL listener lost its connection", metadata: [LogKey.error: "\(error)"])
                await connection.close()
                // With a delay, in case the server accepts connections only to drop them.
                state = .disconnected(failures: 1)
            }
        }
    }
}
