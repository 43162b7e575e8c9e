import Logging
import MusterCore
import MusterPostgres
import MusterStore
import ServiceLifecycle

/// Receives the hints of other coordinators: that work can be leased, that the log has grown. A lost hint costs at most a
/// second, since everything is polled as well.
struct HintListener: Service {
    let listener: PostgresListener
    /// Wakes the syncs that wait for work in this coordinator.
    let claims: Signal
    let bell: Bell

    /// Listens until the coordinator stops.
    func run() async {
        await cancelWhenGracefulShutdown {
            for await event in listener {
                switch event {
                case .notification(let notification):
                    switch Store.Channel(rawValue: notification.channel) {
                    case .work: claims.raiseNews()
                    case .events: bell.ring()
                    case nil: break
                    }
                case .listening, .reconnected:
                    // Hints that were sent while the connection was down are lost: assume that there were some.
                    claims.raiseNews()
                    bell.ring()
                }
            }
        }
    }
}

/// Sends hints about new work to the other coordinators, several merged into one. They are sent after commit, on a
/// connection of the pool.
actor WorkHinter: Service {
    private let store: Store
    private let door: Doorbell
    private let logger: Logger

    /// - Parameter door: rung when there may be new work.
    init(store: Store, door: Doorbell, logger: Logger) {
        self.store = store
        self.door = door
        self.logger = logger
    }

    /// Sends until the coordinator stops, at most about twenty hints a second.
    func run() async {
        await cancelWhenGracefulShutdown { [self] in
            for await _ in door.rings {
                do {
                    try await store.hint(.work)
                    try await Task.sleep(for: .milliseconds(50))
                } catch is CancellationError {
                    return
                } catch {
                    logger.debug("hint not sent", metadata: [CoordinatorMetadata.error: "\(error)"])
                }
            }
        }
    }
}
