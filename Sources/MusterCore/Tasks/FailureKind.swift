/// Why a transfer or a task failed: the closed list of `docs/range-contract.md`.
///
/// The rule and the signals of each kind stand in a row of `FailureKind+Row.swift`, its name in `FailureKind+Name.swift`, its words for people in
/// `FailureKind+Title.swift`. `docs/CONTRIBUTING.md`, "A new failure kind", names every other place.
public enum FailureKind: Hashable, Sendable {
    /// The connection was refused, reset or cut.
    case network
    /// The certificate or the handshake was refused.
    case tls
    /// The host's name did not resolve.
    case dns
    /// A proxy was not reached, or did not pass the request on: the origin was not asked.
    case proxy
    /// Nothing came in time: connecting, or the first byte.
    case timeout
    /// The transfer fell below the low-speed limit.
    case tooSlow
    /// The origin answered with this status.
    case httpStatus(Int)
    /// The answer can't be trusted, on every rung of the ladder (rows 2, 4, 5, 7, 13, 31).
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
    /// The sink has room, but not for this file: it needs more than is free. Parks nothing.
    case noSpace
    /// The system does not let the worker into a directory on the way to the file's path. Parks nothing.
    case noPermission
    /// The sink can't be written, or the destination is taken. The former parks the worker's sink.
    case storage
    /// The chunk's workers keep dying.
    case poison
    /// The deadline passed.
    case deadline
    /// The stored data of the task can't be read, so no work can be handed out for it: it was changed by hand, or by a program that is
    /// newer than the one that reads it.
    case unreadable
}

extension FailureKind {
    /// The kind of a response status that is not a success.
    public static func status(_ status: Int) -> FailureKind {
        switch status {
        case 401, 407: .authentication
        case 404, 410, 451: .notFound
        default: .httpStatus(status)
        }
    }

    /// Whether a status is worth another try (rows 24 to 27): 429 is a limit; 408, 425 and 5xx except 501 and 505 are transient, and so may
    /// be the page of a 200. A 400, 403 or 404 may be a limit too, which shows only from the origin's other answers (`limitSignal`).
    public static func isTransient(status: Int) -> Bool {
        switch status {
        case 200, 408, 425, 429: true
        case 501, 505: false
        case 500...599: true
        default: false
        }
    }

    /// How long a limit that this status signals may last, counted from the last bytes of the origin (row 24): two minutes if the status
    /// means too many requests at once, 5 s if it names another cause, as 401 does for an expired token, and 10 s if it may mean either, or
    /// if there is no status.
    public static func longestLimit(status: Int?) -> Duration {
        switch status {
        case 429, 503: .seconds(120)
        case 401, 409, 410, 451: .seconds(5)
        default: .seconds(10)
        }
    }
}
