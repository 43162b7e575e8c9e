import MusterCore

/// A session at work in sinks: what its own directory there is called (adr/0017).
struct SinkSession: Hashable, Sendable {
    /// The database whose session it is, by a UUID: two of them share nothing below `.muster` (I18).
    let installation: String
    /// The session. The database gives no number twice.
    let session: SessionID

    /// A session; `nil` if the installation is no UUID. It becomes a name in the sink, so it is not taken on trust.
    init?(installation: String, session: SessionID) {
        let groups = installation.split(separator: "-", omittingEmptySubsequences: false)
        let isHexadecimal = installation.utf8.allSatisfy {
            (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains($0)
                || $0 == UInt8(ascii: "-")
        }
        guard groups.map(\.utf8.count) == [8, 4, 4, 4, 12], isHexadecimal else { return nil }
        self.installation = installation
        self.session = session
    }

    /// The name of its own directory, beside `parts`.
    var directoryName: String { "\(session)" }
}
