/// A message that `NOTIFY` sent.
public struct PostgresNotification: Sendable, Hashable {
    /// The channel on which it was sent.
    public var channel: String
    /// The payload, empty if there is none; at most 7,999 bytes.
    public var payload: String
    /// The process of the server that sent it, as `pg_backend_pid()` says there.
    public var senderPID: Int32
}
