public import MusterCore

/// The HTTP endpoint that a group's workers ask for a fresh URL when one has expired (range contract, row 21).
///
/// It is sent `POST` with `ResolverQuestion` as JSON and answers 200 with `ResolverAnswer`.
public struct Resolver: Hashable, Sendable, Codable {
    /// Its URL, `http` or `https`.
    public var url: String
    /// Header fields of the question.
    public var headers: [String: Secret]?

    private enum CodingKeys: String, CodingKey, CaseIterable { case url, headers }

    /// A resolver.
    public init(url: String, headers: [String: Secret]? = nil) {
        self.url = url
        self.headers = headers
    }

    /// Reads a resolver and refuses unknown fields.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.strictContainer(keyedBy: CodingKeys.self)
        url = try container.decode(String.self, forKey: .url)
        headers = try container.decodeIfPresent([String: Secret].self, forKey: .headers)
    }

    /// Throws if the resolver is impossible, with the JSON pointer below it.
    public func check() throws(InputRefusal) {
        let checked: SourceURL
        do throws(SourceURL.Refusal) {
            checked = try SourceURL(validating: url)
        } catch {
            throw InputRefusal(pointer: "/url", reason: Self.reason(error))
        }
        guard checked.origin.hasPrefix("http://") || checked.origin.hasPrefix("https://") else {
            throw InputRefusal(pointer: "/url", reason: Self.schemes)
        }
        try FetchOptions.check(headers: headers)
    }

    private static let schemes = "a resolver is asked by http or https"

    /// A resolver takes fewer schemes than a source, and has no credentials but those in its headers.
    private static func reason(_ refusal: SourceURL.Refusal) -> String {
        switch refusal {
        case .tooLong, .noScheme, .noHost, .noPort, .malformed, .hostTooLong: refusal.description
        case .unsupportedScheme, .directory: schemes
        case .credentials: "user and password in a URL would be shown; give a resolver an Authorization header"
        }
    }
}

/// The question to a resolver.
public struct ResolverQuestion: Hashable, Sendable, Codable {
    /// The task's group.
    public var group: String
    /// The task's key.
    public var key: String
    /// The URL that was given for the task.
    public var url: String
    /// The place of the URL among the task's sources, from 0.
    public var source: Int32
    /// The status with which the last URL was answered.
    public var status: Int?

    /// A question.
    public init(group: String, key: String, url: String, source: Int32, status: Int?) {
        self.group = group
        self.key = key
        self.url = url
        self.source = source
        self.status = status
    }
}

/// The answer of a resolver. Fields that Muster does not know are ignored, since the endpoint belongs to the caller.
public struct ResolverAnswer: Hashable, Sendable, Codable {
    /// The fresh URL. A program that has it can fetch its content.
    public var url: String
    /// Header fields to send with it, besides the task's own. They are secrets, like all header fields.
    public var headers: [String: String]?

    /// An answer.
    public init(url: String, headers: [String: String]? = nil) {
        self.url = url
        self.headers = headers
    }
}

extension ResolverAnswer: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The origin and the names of the headers. The rest of the URL often grants access like a password.
    public var description: String {
        let origin = (try? SourceURL(validating: url))?.origin ?? "no URL"
        return "ResolverAnswer(\(origin), headers: \((headers ?? [:]).keys.sorted()))"
    }
    /// The same as `description`.
    public var debugDescription: String { description }
    /// Has no children, so that no secret is shown.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
