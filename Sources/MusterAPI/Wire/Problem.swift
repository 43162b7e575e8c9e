/// An RFC 9457 problem document with a stable `code`.
public struct Problem: Error, Hashable, Sendable, Codable, CustomStringConvertible {
    /// The closed list of codes; each has one HTTP status.
    public enum Code: String, Sendable, Codable, CaseIterable {
        /// The document or a parameter is malformed or impossible.
        case invalidRequest
        /// The body is larger than allowed.
        case tooLarge
        /// The token is missing or wrong.
        case unauthorized
        /// The token doesn't allow this.
        case forbidden
        /// The request names a host that is not this coordinator's.
        case foreignHost
        /// The request comes from a web page of another origin.
        case foreignOrigin
        /// The body has none of the accepted media types.
        case unsupportedMediaType
        /// The request expects what the coordinator does not do.
        case expectationFailed
        /// There is no such group.
        case groupNotFound
        /// There is no such task.
        case taskNotFound
        /// There is no such worker.
        case workerNotFound
        /// There is no such subscription.
        case subscriptionNotFound
        /// There is no such delivery, or it is no longer kept.
        case deliveryNotFound
        /// No consumer of this name has acknowledged anything.
        case consumerNotFound
        /// There is no such session, or it is over: the worker opens a new one.
        case sessionNotFound
        /// There is no such page.
        case notFound
        /// The resource does not support the method.
        case methodNotAllowed
        /// A group with this name exists.
        case groupExists
        /// A subscription with this name exists.
        case subscriptionExists
        /// The group is sealed: no tasks can be added.
        case groupSealed
        /// The group has finished, and was not asked to open again.
        case groupFinished
        /// Another live task writes to this path.
        case destinationTaken
        /// The request is impossible in the current state, such as a verb in the state of its group, or a position beyond the log's end.
        case conflict
        /// The events after this position are no longer kept; `oldest` is the position of the oldest event that is.
        case eventsGone
        /// The position is of another log: the database has lost the latest events, as in a failover to a standby that was behind.
        case otherLog
        /// The coordinator serves as many readers as it can, or a long operation has locked what is to be changed; a later try may succeed.
        case busy
        /// The database can't be reached now; a later try may succeed.
        case databaseUnavailable
        /// The coordinator is stopping; another coordinator, or a later try, can serve the request.
        case stopping
        /// A defect in Muster.
        case `internal`

        /// The HTTP status of the code.
        public var status: Int {
            switch self {
            case .invalidRequest: 400
            case .unauthorized: 401
            case .forbidden, .foreignOrigin: 403
            case .groupNotFound, .taskNotFound, .workerNotFound, .subscriptionNotFound, .deliveryNotFound,
                .consumerNotFound, .sessionNotFound, .notFound:
                404
            case .methodNotAllowed: 405
            case .groupExists, .subscriptionExists, .groupSealed, .groupFinished, .destinationTaken, .conflict,
                .otherLog:
                409
            case .eventsGone: 410
            case .tooLarge: 413
            case .unsupportedMediaType: 415
            case .expectationFailed: 417
            case .foreignHost: 421
            case .internal: 500
            case .busy, .databaseUnavailable, .stopping: 503
            }
        }

        /// The constant title of the code.
        public var title: String {
            switch self {
            case .invalidRequest: "The request is not valid"
            case .tooLarge: "The request is too large"
            case .unauthorized: "A valid token is needed"
            case .forbidden: "The token does not allow this"
            case .foreignHost: "The request is for another host"
            case .foreignOrigin: "The page does not belong to this coordinator"
            case .unsupportedMediaType: "The body is of another type"
            case .expectationFailed: "The expectation can't be met"
            case .groupNotFound: "There is no such group"
            case .taskNotFound: "There is no such task"
            case .workerNotFound: "There is no such worker"
            case .subscriptionNotFound: "There is no such subscription"
            case .deliveryNotFound: "There is no such delivery"
            case .consumerNotFound: "There is no such consumer"
            case .sessionNotFound: "The session is over"
            case .notFound: "There is nothing here"
            case .methodNotAllowed: "The method is not allowed here"
            case .groupExists: "A group of this name exists"
            case .subscriptionExists: "A subscription of this name exists"
            case .groupSealed: "The group is sealed"
            case .groupFinished: "The group has finished"
            case .destinationTaken: "The destination is taken"
            case .conflict: "The state does not allow this"
            case .eventsGone: "The events are not kept any more"
            case .otherLog: "The log is another one"
            case .busy: "The coordinator is busy"
            case .databaseUnavailable: "The database is not available"
            case .stopping: "The coordinator is stopping"
            case .internal: "Something is wrong with Muster"
            }
        }
    }

    /// `urn:muster:problem:<code>`: identifies the kind, and can't be dereferenced.
    public var type: String
    /// The constant title of the kind.
    public var title: String
    /// The HTTP status.
    public var status: Int
    /// The stable code.
    public var code: Code
    /// What is wrong with this request.
    public var detail: String
    /// The JSON pointer of the place in the document.
    public var pointer: String?
    /// The line of the manifest, counted from 1.
    public var line: Int?
    /// The position of the oldest event that is kept; only with `eventsGone`.
    public var oldest: Int64?

    /// A problem.
    public init(_ code: Code, _ detail: String, pointer: String? = nil, line: Int? = nil, oldest: Int64? = nil) {
        type = "urn:muster:problem:\(code.rawValue)"
        title = code.title
        status = code.status
        self.code = code
        self.detail = detail
        self.pointer = pointer
        self.line = line
        self.oldest = oldest
    }

    /// One line for people.
    public var description: String {
        let place = [line.map { "line \($0)" }, pointer].compactMap { $0 }.joined(separator: " ")
        return place.isEmpty ? "\(title): \(detail)" : "\(title): \(place): \(detail)"
    }
}
