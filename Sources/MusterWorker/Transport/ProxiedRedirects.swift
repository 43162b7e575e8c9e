import Synchronization

/// Where redirects may take a request that goes through a proxy: only to hosts whose addresses were checked here first (range contract, row 39). A loop's
/// thread can't wait for that check, so the request stops at the redirect, and is made again after the check.
final class ProxiedRedirects: Sendable {
    private struct State {
        var stopped: String?
        var count = 0
    }

    /// The most hosts that are checked for one lease: a request that needs more is given up.
    private static let limit = 10

    private let sources: SourceGuard?
    private let state = Mutex(State())

    /// The redirects of one lease; without a guard all are allowed.
    init(_ sources: SourceGuard?) {
        self.sources = sources
    }

    /// Whether a redirect may be followed at once. Asked on the threads of the loops.
    func allows(_ url: String) -> Bool {
        guard let sources, sources.mustResolve(url) || sources.refusal(byProxyOf: url) != nil else { return true }
        state.withLock { $0.stopped = url }
        return false
    }

    /// The URL at which the last request stopped, to be checked; `nil` when there were too many.
    func next() -> String? {
        state.withLock { state in
            state.count += 1
            defer { state.stopped = nil }
            return state.count <= Self.limit ? state.stopped : nil
        }
    }
}
