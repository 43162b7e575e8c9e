import MusterAPI
import MusterCore
import ServiceLifecycle

/// Reports when the workers of `up` are silent although their processes are there, and when they are heard of again.
struct SilenceWatch: Service {
    /// What is reported of a worker.
    enum News: Hashable, Sendable {
        /// It has not been heard of for this long.
        case silent(name: String, Duration)
        /// It is heard of again.
        case heard(name: String)
    }

    /// The workers that were reported as silent.
    struct Told: Sendable {
        private var names: Set<String> = []

        /// No worker yet.
        init() {}

        /// What there is to report of the live workers: each silence once. A worker that is gone and was reported as silent stays so until
        /// it is back. A worker that was started again has two sessions for a while.
        mutating func news(_ workers: [WorkerDocument], own: Set<String>, now: Timestamp) -> [News] {
            var news: [News] = []
            for (name, sessions) in Dictionary(grouping: workers, by: \.name).sorted(by: { $0.key < $1.key })
            where own.contains(name) {
                let since = sessions.compactMap(\.silentSince)
                if since.count < sessions.count {
                    if names.remove(name) != nil { news.append(.heard(name: name)) }
                } else if names.insert(name).inserted, let last = since.max() {
                    news.append(.silent(name: name, now.since(last)))
                }
            }
            return news
        }
    }

    /// The coordinator's port, once it listens.
    let port: Eventual<Int>
    /// Where it listens.
    let host: String
    /// The token for the coordinator.
    let token: String?
    /// Whether there is room for the database: without it, nothing that workers report can be stored.
    let room: DatabaseRoom
    /// The workers' names.
    let workers: Set<String>
    /// Receives the news.
    let report: @Sendable (News) -> Void

    /// How often the workers are queried.
    private static let period: Duration = .seconds(3)

    /// Watches until shutdown.
    func run() async throws {
        do {
            try await cancelWhenGracefulShutdown {
                let address = ListenAddress(host: host, port: try await port.value())
                try await CommandContext.withClient(servers: [address.url], tokens: .common(token)) { client in
                    var told = Told()
                    while true {
                        // Workers may be unheard of at the end of a period because room was lacking at its beginning.
                        let lacked = room.lack != nil
                        try await Task.sleep(for: Self.period)
                        if lacked || room.lack != nil { continue }
                        // A coordinator that does not answer is reported elsewhere.
                        let live = try? await Page.all { try await client.workers(after: $0, limit: Limits.pageSize) }
                        for news in told.news(live ?? [], own: workers, now: .ofThisMachine) { report(news) }
                    }
                }
            }
        } catch is CancellationError {
            return
        }
    }
}
