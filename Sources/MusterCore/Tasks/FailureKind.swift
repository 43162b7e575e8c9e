/// Why a transfer or a task failed: the closed list of `docs/range-contract.md`, each with its retry rule.
public enum FailureKind: Hashable, Sendable {
    /// The connection was refused, reset or cut.
    case network
    /// The certificate or the handshake was refused.
    case tls
    /// The host's name did not resolve.
    case dns
    /// Nothing came in time: connecting, or the first byte.
    case timeout
    /// The transfer fell below the low-speed limit.
    case tooSlow
    /// The origin answered with this status.
    case httpStatus(Int)
    /// The answer to a range request can't be trusted (rows 2, 4, 5, 7, 13, 31).
    case badRange
    /// The content changed more often than a task may start over (row 6).
    case changed
    /// The file's digest is not what was expected.
    case digestMismatch
    /// The file's size is not what was expected.
    case sizeMismatch
    /// The address may not be fetched from (row 39).
    case refusedAddress
    /// The origin asked for credentials (401, 407).
    case authentication
    /// The origin does not have it (404, 410, 451).
    case notFound
    /// The sink has no room. Parks the worker's sink, not the task.
    case storageFull
    /// The sink can't be written, or the destination is taken. The former parks the worker's sink.
    case storage
    /// The chunk's workers keep dying.
    case poison
    /// The deadline passed.
    case deadline

    /// What happens to a chunk after a failure of this kind.
    public enum Rule: Sendable, Hashable {
        /// Try again after a backoff, rotating through the sources.
        case retry
        /// This source will not do; take the next one at once, or fail the task if it was the last.
        case nextSource
        /// No source can help: the task fails.
        case giveUp
        /// The representation changed: drop what there is and start over with the next content version.
        case startOver
        /// The worker's storage is at fault: the chunk goes back untouched.
        case returnChunk
    }

    /// The retry rule of the kind (range contract, rows 2, 6, 21–26, 36).
    public var rule: Rule {
        switch self {
        case .network, .dns, .timeout, .tooSlow, .badRange: .retry
        case .tls, .authentication, .notFound, .refusedAddress, .sizeMismatch: .nextSource
        case .httpStatus(let status): Self.isTransient(status: status) ? .retry : .nextSource
        case .changed, .digestMismatch: .startOver
        case .storageFull: .returnChunk
        case .storage, .poison, .deadline: .giveUp
        }
    }

    /// Whether an answer may mean that there were too many connections at once (range contract, row 24).
    public enum LimitSignal: String, Sendable, Hashable, CaseIterable {
        /// It has nothing to do with that.
        case none
        /// Some origins limit in this way; it counts only if others of the fleet are at work on the same origin.
        case possible
        /// It says so.
        case certain
    }

    /// What a failure of this kind says about the origin's limits (row 24). `status` is that of the answer, for the
    /// kinds that stand for several; `nil` when there was none.
    public func limitSignal(status: Int?) -> LimitSignal {
        switch self {
        case .httpStatus(429), .httpStatus(503): .certain
        case .httpStatus(403), .network: .possible
        case .notFound: status == 404 ? .possible : .none
        case .httpStatus, .tls, .dns, .timeout, .tooSlow, .badRange, .changed, .digestMismatch, .sizeMismatch,
            .refusedAddress, .authentication, .storageFull, .storage, .poison, .deadline:
            .none
        }
    }

    /// Whether a URL that worked before may have expired (row 21): 401, 403 and 410. A proxy's 407 says nothing about
    /// the URL, and no status at all is a secret that the worker could not read.
    public func isExpiry(status: Int?) -> Bool {
        switch self {
        case .authentication: status == 401
        case .notFound: status == 410
        case .httpStatus(let status): status == 403
        case .network, .tls, .dns, .timeout, .tooSlow, .badRange, .changed, .digestMismatch, .sizeMismatch,
            .refusedAddress, .storageFull, .storage, .poison, .deadline:
            false
        }
    }

    /// Whether a status is worth another try (row 24–26): 403 and 429 limit, 408, 425 and 5xx pass.
    public static func isTransient(status: Int) -> Bool {
        switch status {
        case 403, 408, 425, 429: true
        case 501, 505: false
        case 500...599: true
        default: false
        }
    }

    /// The kind of a response status that is no success.
    public static func status(_ status: Int) -> FailureKind {
        switch status {
        case 401, 407: .authentication
        case 404, 410, 451: .notFound
        default: .httpStatus(status)
        }
    }
}

extension FailureKind: RawRepresentable, Codable {
    /// Reads the name that the API uses, such as `network` or `httpStatus(503)`.
    public init?(rawValue: String) {
        if let known = Self.plain.first(where: { $0.rawValue == rawValue }) {
            self = known
        } else if rawValue.hasPrefix("httpStatus("), rawValue.hasSuffix(")"),
            let status = ContentRange.number(rawValue.dropFirst("httpStatus(".count).dropLast()),
            (100...999).contains(status)
        {
            self = .httpStatus(Int(status))
        } else {
            return nil
        }
    }

    private static let plain: [FailureKind] = [
        .network, .tls, .dns, .timeout, .tooSlow, .badRange, .changed, .digestMismatch, .sizeMismatch, .refusedAddress,
        .authentication, .notFound, .storageFull, .storage, .poison, .deadline,
    ]

    /// The name that the API and the database use.
    public var rawValue: String {
        switch self {
        case .network: "network"
        case .tls: "tls"
        case .dns: "dns"
        case .timeout: "timeout"
        case .tooSlow: "tooSlow"
        case .httpStatus(let status): "httpStatus(\(status))"
        case .badRange: "badRange"
        case .changed: "changed"
        case .digestMismatch: "digestMismatch"
        case .sizeMismatch: "sizeMismatch"
        case .refusedAddress: "refusedAddress"
        case .authentication: "authentication"
        case .notFound: "notFound"
        case .storageFull: "storageFull"
        case .storage: "storage"
        case .poison: "poison"
        case .deadline: "deadline"
        }
    }
}
