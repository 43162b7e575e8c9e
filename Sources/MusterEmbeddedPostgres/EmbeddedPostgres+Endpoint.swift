public import SystemPackage

extension EmbeddedPostgres {
    /// How to reach the server.
    public struct Endpoint: Sendable, Hashable {
        /// Where the server came from.
        public enum Provenance: Sendable, Hashable {
            /// The cluster was made by this start.
            case created
            /// The cluster existed, and its server was started.
            case started
            /// A server was already running, left over by a process that was killed.
            case adopted
        }

        /// The directory of the server's Unix socket.
        public let socketDirectory: FilePath
        /// The name of the database.
        public let database: String
        /// The role to connect as; no password is asked for, since only the directory's owner and root can connect.
        public let user: String
        /// Where the server came from.
        public let provenance: Provenance

        /// The connection string for libpq: `key='value'` pairs (libpq, "Connection Strings").
        public var conninfo: String { conninfo(database: database) }

        /// The connection string for another database of the same server.
        public func conninfo(database: String) -> String {
            "host=\(Self.quoted(socketDirectory.string)) port=5432 dbname=\(Self.quoted(database)) "
                + "user=\(Self.quoted(user))"
        }

        /// A value quoted as libpq wants it: in single quotes, with backslashes before quotes and backslashes.
        public static func quoted(_ value: String) -> String {
            var text = "'"
            for character in value {
                if character == "'" || character == "\\" { text.append("\\") }
                text.append(character)
            }
            return text + "'"
        }
    }
}
