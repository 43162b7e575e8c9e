extension FailureKind {
    /// The names of the kinds; all statuses share one. The API's description lists the names (`openapi.yaml`), and a test compares.
    public enum Name: String, Sendable, Hashable, CaseIterable {
        case network, tls, dns, proxy, timeout, tooSlow, httpStatus, badRange, changed, digestMismatch, sizeMismatch,
            refusedAddress
        case authentication, notFound, storageFull, noSpace, noPermission, storage, poison, deadline, unreadable
    }

    /// The kind's name.
    public var name: Name {
        switch self {
        case .network: .network
        case .tls: .tls
        case .dns: .dns
        case .proxy: .proxy
        case .timeout: .timeout
        case .tooSlow: .tooSlow
        case .httpStatus: .httpStatus
        case .badRange: .badRange
        case .changed: .changed
        case .digestMismatch: .digestMismatch
        case .sizeMismatch: .sizeMismatch
        case .refusedAddress: .refusedAddress
        case .authentication: .authentication
        case .notFound: .notFound
        case .storageFull: .storageFull
        case .noSpace: .noSpace
        case .noPermission: .noPermission
        case .storage: .storage
        case .poison: .poison
        case .deadline: .deadline
        case .unreadable: .unreadable
        }
    }

    /// All kinds but `httpStatus`, which needs a status.
    private static let plain: [FailureKind] = [
        .network, .tls, .dns, .proxy, .timeout, .tooSlow, .badRange, .changed, .digestMismatch, .sizeMismatch,
        .refusedAddress, .authentication, .notFound, .storageFull, .noSpace, .noPermission, .storage, .poison,
        .deadline, .unreadable,
    ]
}

extension FailureKind: RawRepresentable, Codable {
    /// Reads the name that the API uses, such as `network` or `httpStatus(503)`.
    public init?(rawValue: String) {
        if let kind = Self.plain.first(where: { $0.name.rawValue == rawValue }) {
            self = kind
        } else if rawValue.hasPrefix("httpStatus("), rawValue.hasSuffix(")"),
            let status = ContentRange.number(rawValue.dropFirst("httpStatus(".count).dropLast()),
            (100...999).contains(status)
        {
            self = .httpStatus(Int(status))
        } else {
            return nil
        }
    }

    /// The name that the API and the database use.
    public var rawValue: String {
        if case .httpStatus(let status) = self { "\(name.rawValue)(\(status))" } else { name.rawValue }
    }
}
