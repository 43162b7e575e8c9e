extension ScriptedOrigin {
    /// A request, and how it was answered.
    public struct Request: Sendable, Hashable {
        /// Counts the requests of the origin from 0.
        public let number: Int
        /// Counts the connections of the origin from 0.
        public let connection: Int
        /// The version of HTTP that it came by.
        public let version: Version
        /// Whether the client has shown a certificate that the origin's client authority vouches for.
        public let hasClientCertificate: Bool
        /// The method.
        public let method: String
        /// The request target with its query.
        public let target: String
        /// The target without its query.
        public let path: String
        /// All fields as they came; over HTTP/2 in lower case, with `:authority` as `host`.
        public let headers: [Header]
        /// Its body, as text.
        public let body: String
        /// The misbehaviours that were played, in the order in which they were added.
        public internal(set) var misbehaviours: [Misbehaviour]
        /// The status that was answered; 0 until there is one.
        public internal(set) var status: Int
        /// How many bytes of the body have been handed to the kernel.
        public internal(set) var bodyBytesSent: Int64
        /// Whether the response has ended, in whatever way.
        public internal(set) var isFinished: Bool

        /// The Range field.
        public var range: String? { header("Range") }

        /// The value of the first field of that name, without regard to case.
        public func header(_ name: String) -> String? {
            headers.first { $0.name.lowercased() == name.lowercased() }?.value
        }
    }
}
