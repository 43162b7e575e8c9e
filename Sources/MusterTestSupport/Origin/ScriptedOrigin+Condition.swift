extension ScriptedOrigin {
    /// The requests of a file to which a misbehaviour applies.
    public struct Condition: Sendable, Hashable {
        /// The numbers of the requests, counting those of the file from 0; nil is all.
        public var requests: Range<Int>?
        /// Only requests whose range starts here.
        public var rangeStart: Int64?
        /// Only requests with, or without, a Range field.
        public var hasRange: Bool?
        /// The numbers of the connections, counting those of the origin from 0; nil is all.
        public var connections: Range<Int>?
        /// Only once this many bytes of the path's body were sent, over all its responses.
        public var bytesSent: Int64?
        /// Only requests by this version of HTTP.
        public var version: Version?
        /// Only requests that have a field of this name.
        public var field: String?

        /// Makes a condition; all parts that are given have to hold.
        public init(
            requests: Range<Int>? = nil,
            rangeStart: Int64? = nil,
            hasRange: Bool? = nil,
            connections: Range<Int>? = nil,
            bytesSent: Int64? = nil,
            version: Version? = nil,
            field: String? = nil
        ) {
            self.requests = requests
            self.rangeStart = rangeStart
            self.hasRange = hasRange
            self.connections = connections
            self.bytesSent = bytesSent
            self.version = version
            self.field = field
        }

        /// Every request.
        public static let always = Condition()
        /// The first `count` requests.
        public static func first(_ count: Int) -> Condition { Condition(requests: 0..<count) }
        /// All but the first `count` requests.
        public static func after(_ count: Int) -> Condition { Condition(requests: count..<Int.max) }
        /// All requests once this many bytes of the path's body were sent.
        public static func after(bytesSent: Int64) -> Condition { Condition(bytesSent: bytesSent) }
        /// Requests whose range starts here.
        public static func range(startingAt offset: Int64) -> Condition { Condition(rangeStart: offset) }
        /// Requests with a Range field.
        public static let ranged = Condition(hasRange: true)
        /// Requests with a field of this name.
        public static func having(_ field: String) -> Condition { Condition(field: field) }
        /// The requests of the first `count` connections.
        public static func firstConnections(_ count: Int) -> Condition { Condition(connections: 0..<count) }

        /// The request, and the circumstances, that a condition is checked against.
        struct Situation: Sendable {
            var request: OriginRequest
            var number: Int
            var range: OriginRange
            var connection: Int
            var bytesSent: Int64
            var version: Version
        }

        func holds(_ situation: Situation) -> Bool {
            if let requests, !requests.contains(situation.number) { return false }
            if let rangeStart, situation.range.start != rangeStart { return false }
            if let hasRange, hasRange != (situation.range != .none) { return false }
            if let connections, !connections.contains(situation.connection) { return false }
            if let bytesSent, situation.bytesSent < bytesSent { return false }
            if let version, situation.version != version { return false }
            if let field, situation.request.header(field) == nil { return false }
            return true
        }
    }

    struct Rule: Sendable {
        let misbehaviour: Misbehaviour
        let condition: Condition
    }
}
