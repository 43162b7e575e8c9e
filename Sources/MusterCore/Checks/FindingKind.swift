/// What a check of the sinks and the database can find (adr/0048).
public enum FindingKind: String, Sendable, Hashable, Codable, CaseIterable {
    /// Rows of the database contradict each other.
    case rows
    /// A finished file is not at its path.
    case fileMissing
    /// What stands at the path of a finished file has another size, another content, or is no regular file.
    case fileChanged
    /// A finished file can't be read.
    case fileUnreadable
    /// Another program has written to a finished file that has its size still; only a deep check tells whether its content is the same.
    case fileWritten
    /// A finished file carries another installation's mark, or a removed task has replaced it.
    case fileForeign
    /// The part of an unfinished task is gone, although bytes of it were durable.
    case partMissing
    /// The part of an unfinished task has fewer bytes than were durable.
    case partShort
    /// There is a part that no row explains.
    case partUnknown
    /// There is the directory of a session that is over.
    case sessionUnknown
    /// Another installation uses the sink.
    case installationForeign

    /// Whether it is only told: nothing is wrong because of it.
    public var isNote: Bool {
        switch self {
        case .fileWritten, .fileForeign, .installationForeign: true
        case .rows, .fileMissing, .fileChanged, .fileUnreadable, .partMissing, .partShort, .partUnknown,
            .sessionUnknown:
            false
        }
    }
}
