import HTTPTypes
import Hummingbird
import Logging
import MusterAPI
import MusterCore
import MusterStore
import MusterSystem
import ServiceLifecycle

/// The coordinator's HTTP API: which paths there are, and which token opens them.
struct API: Sendable {
    let store: Store
    let syncs: SyncService
    let bell: Bell
    let clock: MonotonicClock
    let configuration: CoordinatorConfiguration
    let metrics: CoordinatorMetrics
    let logger: Logger

    /// The router of all paths. It answers the methods that a path does not have with 405.
    func router() -> Router<BasicRequestContext> {
        let router = routes()
        Self.refuseOtherMethods(of: router)
        return router
    }

    /// The router of the paths and of the methods that they have.
    func routes() -> Router<BasicRequestContext> {
        let router = Router(context: BasicRequestContext.self, options: .autoGenerateHeadEndpoints)
        router.add(middleware: ProblemMiddleware(own: configuration.ownProcess, metrics: metrics, logger: logger))
        router.add(middleware: HeadMiddleware())
        router.add(
            middleware: StrangerMiddleware(
                check: StrangerCheck(listenHost: configuration.listenHost, names: configuration.hosts)))
        let check = TokenCheck(admin: configuration.adminToken, worker: configuration.workerToken)

        router.get("healthz") { _, _ in Answer.text("ok\n") }
        router.get("readyz") { _, _ in
            guard !Task.isShuttingDownGracefully else { throw Problem(.stopping, "the coordinator is stopping") }
            try await store.ping()
            return Answer.text("ready\n")
        }
        let description = EmbeddedTexts.files["HTTP/openapi.yaml", default: ""]
        router.get("openapi.yaml") { _, _ in
            Answer.text(description, type: "application/yaml")
        }
        router.group().add(middleware: AccessMiddleware(check: check, access: .admin)).get("metrics") { _, _ in
            Answer.text(metrics.render(), type: "text/plain; version=0.0.4; charset=utf-8")
        }

        let admin = router.group("v1").add(middleware: AccessMiddleware(check: check, access: .admin))
            .add(middleware: OnceMiddleware(store: store))
        let share = ReadersShare(configuration.readers ?? ReaderLimits(connections: configuration.databaseConnections))
        let readers = admin.group().add(middleware: ReadersMiddleware(share: share))
        let intake = TaskIntake(store: store, metrics: metrics)
        GroupRoutes(store: store, intake: intake, own: configuration.ownProcess).add(to: readers)
        TaskRoutes(store: store, intake: intake, own: configuration.ownProcess).add(to: readers)
        RemovalRoutes(store: store).add(to: readers)
        // A reader of events mostly waits, so it takes a place in the readers' share only for each look.
        let reader = EventReader(
            store: store, bell: bell, clock: clock, longPoll: configuration.longPoll, share: share)
        EventRoutes(reader: reader).add(to: admin)
        ConsumerRoutes(store: store, reader: reader).add(to: admin, readers: readers)
        SubscriptionRoutes(store: store).add(to: readers)
        FleetRoutes(store: store, maxConnectionsPerOrigin: configuration.maxConnectionsPerOrigin).add(to: readers)
        CheckRoutes(store: store).add(to: readers)

        let worker = router.group("v1").add(middleware: AccessMiddleware(check: check, access: .worker))
        SessionRoutes(syncs: syncs).add(to: worker)
        return router
    }

    private static let methods: Set<HTTPRequest.Method> = [
        .get, .head, .post, .put, .patch, .delete, .options, .trace, .connect, .init("QUERY")!,
    ]

    /// Answers the methods that a path does not have with 405 and those that it has (RFC 9110 §15.5.6).
    private static func refuseOtherMethods(of router: Router<BasicRequestContext>) {
        for (path, routes) in Dictionary(grouping: router.routes, by: \.path.description) {
            var known = Set(routes.map(\.method))
            // The router makes HEAD of GET by itself, later than this.
            if known.contains(.get) { known.insert(.head) }
            let allowed = known.map(\.rawValue).sorted().joined(separator: ", ")
            for method in methods.subtracting(known) {
                router.on(RouterPath(path), method: method) { _, _ in
                    var answer = Answer.problem(Problem(.methodNotAllowed, "this path has \(allowed)"))
                    answer.headers[.allow] = allowed
                    return answer
                }
            }
        }
    }
}
