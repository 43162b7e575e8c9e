import MusterCore

/// The identity of a session in sinks; the session's own directory there is named after it (adr/0017).
struct SinkSession: Hashable, Sendable {
    /// The UUID of the session's database: two databases share nothing below `.muster` (I18).
    let installation: String
    /// The session. The database never gives a number twice.
    let session: SessionID

    /// A session; `nil` if the installation is no UUID. It becomes a file name in the sink, so it is checked.
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

    /// The session whose own directory has this name; `nil` if Muster would not have named one exactly so.
    static func ofDirectory(_ name: String) -> SessionID? {
        // Spellings such as "+1" or "007" would read the same, but are other directories.
        guard let number = Int64(name), number > 0, "\(number)" == name else { return nil }
        return SessionID(number)
    }
}
