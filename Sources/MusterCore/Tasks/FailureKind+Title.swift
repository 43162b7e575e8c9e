extension FailureKind {
    /// What a failure is, for people, in front of its detail: the kind; the status, unless kind or detail tell it; and the source, where it has to
    /// do with one.
    ///
    /// `notFound (status 404) from https://example.org/a`
    public func title(status: Int?, source: String?, detail: String) -> String {
        let isTold = status.map { detail.contains("answered \($0)") } ?? false
        var title =
            switch self {
            case .httpStatus where isTold: "httpStatus"
            case .httpStatus: rawValue
            default: rawValue + (isTold ? "" : status.map { " (status \($0))" } ?? "")
            }
        if let source, !isOfStorage { title += " from \(source)" }
        return title
    }

    /// Whether a sink is what failed, whatever the bytes came from.
    private var isOfStorage: Bool {
        switch self {
        case .storageFull, .noSpace, .noPermission, .storage: true
        case .network, .tls, .dns, .timeout, .tooSlow, .httpStatus, .badRange, .changed, .digestMismatch, .sizeMismatch,
            .refusedAddress, .authentication, .notFound, .poison, .deadline, .unreadable:
            false
        }
    }
}
