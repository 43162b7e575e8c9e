import MusterAPI
import MusterCore
import ServiceLifecycle

/// Tells when nothing is heard of the workers of `up` although their processes are there, and when they are heard of again.
struct SilenceWatch: Service {
    /// What is told of a worker.
    enum News: Hashable, Sendable {
        /// Nothing has been heard of it for so long.
        case silent(name: String, Duration)
        /// It is heard of again.
        case heard(name: String)
    }

    /// The workers that were said to be silent.
    struct Told: Sendable {
        private var names: Set<String> = []

        /// Nobody yet.
        init() {}

        /// What there is to be told of the live workers: each silence once. A worker that is gone was silent, if anything was told of it, and stays
        /// so until it is back. One that was started again has two sessions for a while.
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
    /// Opens it.
    let token: String?
    /// Whether there is room for the database: without, nothing that workers report can be stored.
    let room: DatabaseRoom
    /// The workers' names.
    let workers: Set<String>
    /// Told what happens.
    let report: @Sendable (News) -> Void

    /// How often the workers are looked at.
    private static let period: Duration = .seconds(3)

    /// Watches until shutdown.
    func run() async throws {
        do {
            try await cancelWhenGracefulShutdown {
                let address = ListenAddress(host: host, port: try await port.value())
                try await CommandContext.withClient(servers: [address.url], tokens: .common(token)) { client in
                    var told = Told()
                    while true {
                        // What lacked room at the beginning of a period may not have been heard of by its end.
                        let lacked = room.lack != nil
                        try await Task.sleep(for: Self.period)
                        if lacked || room.lack != nil { continue }
                        // A coordinator that does not answer says so itself.
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
