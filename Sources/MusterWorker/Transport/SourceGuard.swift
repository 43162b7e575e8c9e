import MusterCore
import MusterSystem
import Synchronization

/// Which addresses this worker asks (range contract, row 39), by the last answer of a coordinator.
final class SourceGuard: Sendable {
    private let rule = Mutex<AddressGuard?>(nil)
    private let predicate: (@Sendable (String) -> Bool)?
    /// Names whose addresses were all allowed, and until when that is valid.
    private let resolved = Mutex<[String: Int64]>([:])

    /// A guard that allows everything until an answer brings a rule.
    ///
    /// - Parameter predicate: an additional check; what it refuses stays refused.
    init(besides predicate: (@Sendable (_ numericAddress: String) -> Bool)? = nil) {
        self.predicate = predicate
    }

    /// Takes over another rule; transfers under way are held to it from their next connection on.
    func adopt(_ rule: AddressGuard?) {
        self.rule.withLock { $0 = rule }
        resolved.withLock { $0 = [:] }
    }

    /// Whether a numeric address may be connected to. Asked on the threads of the loops.
    func allows(_ numericAddress: String) -> Bool {
        guard predicate?(numericAddress) ?? true else { return false }
        return rule.withLock { $0 }?.allows(numericAddress) ?? true
    }

    /// Why a proxy may not be asked for a URL; `nil` when it may.
    ///
    /// This judges the URL alone. The proxy resolves names, so they are resolved here before it is asked: see `refusal(byResolving:)`.
    func refusal(byProxyOf url: String) -> String? {
        guard let rule = rule.withLock({ $0 }), rule.refusesPrivate else { return nil }
        guard let host = URLHost(of: url) else { return "the URL has no host" }
        return host.isAllowed(by: rule) ? nil : "the host \(host.name) is not allowed"
    }

    /// Whether a URL has a name that has to be resolved before a proxy may be asked for it, and was not resolved lately.
    func mustResolve(_ url: String) -> Bool {
        guard let rule = rule.withLock({ $0 }), rule.refusesPrivate, let host = URLHost(of: url) else { return false }
        let moment = MonotonicClock.now()
        return !host.isAddress && resolved.withLock { $0[host.name] ?? .min < moment }
    }

    /// Resolves the name of a URL, and says why a proxy may not be asked for it; `nil` when it may. Blocks.
    ///
    /// Every address has to be allowed. A name without an address here may be one that only the proxy knows: it passes if it looks like a name of the public
    /// Internet.
    func refusal(byResolving url: String) -> String? {
        if let reason = refusal(byProxyOf: url) { return reason }
        guard mustResolve(url), let rule = rule.withLock({ $0 }), let host = URLHost(of: url) else { return nil }
        let addresses = host.addresses()
        if let refused = addresses.first(where: { !rule.allows($0) }) {
            return "the host \(host.name) has the address \(refused), which is not allowed"
        }
        guard !addresses.isEmpty || host.mayBePublic else {
            return "the host \(host.name) has no address here, and may be an internal one"
        }
        let now = MonotonicClock.now()
        resolved.withLock { resolved in
            resolved = resolved.filter { $0.value > now }
            if resolved.count < Self.resolvedLimit { resolved[host.name] = now + Self.resolvedNanoseconds }
        }
        return nil
    }

    /// How long a resolved name need not be resolved again, and how many names are remembered.
    private static let resolvedNanoseconds: Int64 = 30_000_000_000
    private static let resolvedLimit = 4_096
}
