import FoundationEssentials

extension ScriptedOrigin {
    /// How a resolver answers (21).
    public enum Resolution: Sendable, Hashable {
        /// With a fresh signed URL of the path in the question's `url`, and these fields to send along.
        case signing(headers: [String: String])
        /// With this URL, and these fields to send along.
        case fixed(url: String, headers: [String: String])
        /// With this body, whatever it is.
        case body(String)
    }

    /// Answers `POST` at a path as a resolver does: the question is JSON with a `url`, the answer is JSON with a fresh
    /// one. Misbehaviours of the path apply, such as a status.
    public func resolve(at path: String, _ resolution: Resolution = .signing(headers: [:])) {
        state.update { $0.resolvers[path] = resolution }
    }

    /// The questions that a resolver was asked so far: the bodies.
    public func questions(at path: String) -> [String] {
        requests(for: path).filter { $0.method == "POST" }.map(\.body)
    }
}

extension ScriptedOrigin.State {
    private struct Question: Decodable {
        let url: String
    }

    private struct Answer: Encodable {
        let url: String
        let headers: [String: String]
    }

    /// The body of a resolver's answer.
    mutating func resolve(_ resolution: ScriptedOrigin.Resolution, _ request: OriginRequest) -> String {
        switch resolution {
        case .body(let body):
            return body
        case .fixed(let url, let headers):
            return Self.text(Answer(url: url, headers: headers))
        case .signing(let headers):
            guard let question = try? JSONDecoder().decode(Question.self, from: Data(request.body.utf8)) else {
                return #"{"error":"the question is not JSON with a url"}"#
            }
            let origin = "\(transport.isTLS ? "https" : "http")://\(request.header("Host") ?? "")"
            return Self.text(Answer(url: origin + signatures.issue(Self.path(of: question.url)), headers: headers))
        }
    }

    /// The part after scheme and authority, without the query.
    private static func path(of url: String) -> String {
        let afterScheme = url.ranges(of: "://").first.map { url[$0.upperBound...] } ?? url[...]
        return String(afterScheme.drop { $0 != "/" }.prefix { $0 != "?" })
    }

    private static func text(_ answer: Answer) -> String {
        do {
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
            return String(decoding: try encoder.encode(answer), as: UTF8.self)
        } catch {
            // Encoding strings does not fail; if it does, the client sees why.
            return "\(error)"
        }
    }
}
