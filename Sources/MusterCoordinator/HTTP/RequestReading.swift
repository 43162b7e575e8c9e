import FoundationEssentials
import HTTPTypes
import Hummingbird
import MusterAPI
import MusterCore
import NIOCore

extension Request {
    /// The JSON document of the body, bounded. An empty body is an empty object, so that a verb needs none.
    func document<Value: Decodable>(_ type: Value.Type) async throws -> Value {
        guard try bodyForm != .lines else {
            throw Problem(.unsupportedMediaType, "this takes a single document: application/json")
        }
        // A body whose declared length is too large is not read at all.
        if let length = headers[.contentLength].flatMap({ Int64($0) }), length > Limits.requestBody.bytes {
            throw NIOTooManyBytesError(maxBytes: Int(Limits.requestBody.bytes))
        }
        let body = try await body.collect(upTo: Int(Limits.requestBody.bytes))
        let bytes = body.readableBytes == 0 ? Data("{}".utf8) : Data(body.readableBytesView)
        try JSONDepth.check(bytes)
        return try JSONDecoder().decode(type, from: bytes)
    }

    /// A parameter of the query. U+0000 is refused here, since the database can't store it.
    func query(_ name: String) throws(Problem) -> String? {
        guard let text = uri.queryParameters[Substring(name)] else { return nil }
        guard !text.utf8.contains(0) else { throw Problem(.invalidRequest, "\(name) contains U+0000") }
        return String(text)
    }

    /// A parameter of the query that must be one of a closed list.
    func query<Value: RawRepresentable & CaseIterable>(_ name: String, as type: Value.Type) throws(Problem) -> Value?
    where Value.RawValue == String {
        guard let text = try query(name) else { return nil }
        guard let value = Value(rawValue: text) else {
            let known = Value.allCases.map(\.rawValue).joined(separator: ", ")
            throw Problem(.invalidRequest, "\(name) must be one of \(known)")
        }
        return value
    }

    /// A parameter of the query that is true or false; false when absent.
    func flag(_ name: String) throws(Problem) -> Bool {
        try query(name, as: Flag.self) == .true
    }

    /// A number of the query within a range.
    func query(_ name: String, in range: ClosedRange<Int64>, default value: Int64) throws(Problem) -> Int64 {
        guard let text = try query(name) else { return value }
        guard let number = Int64(text), range.contains(number) else {
            throw Problem(.invalidRequest, "\(name) must be a number within \(range)")
        }
        return number
    }

    /// A duration of the query, capped: `20s`, `500ms`, or plain seconds.
    func query(_ name: String, atMost limit: Duration) throws(Problem) -> Duration {
        guard let text = try query(name) else { return .zero }
        guard let duration = DurationNotation.parse(text) ?? DurationNotation.parse(text + "s") else {
            throw Problem(.invalidRequest, "\(name) must be a duration such as 20s")
        }
        return min(duration, limit)
    }

    /// The maximum number of items of a page.
    func pageLimit() throws(Problem) -> Int32 {
        Int32(try query("limit", in: 1...Int64(Limits.pageSize), default: 100))
    }

    /// The name of this request, by which a repetition is recognized (I10).
    func idempotencyKey() throws(Problem) -> String? {
        guard let key = headers[.idempotencyKey] else { return nil }
        guard !key.isEmpty, key.utf8.count <= Limits.nameCharacters else {
            throw Problem(.invalidRequest, "an Idempotency-Key has 1 to \(Limits.nameCharacters) bytes")
        }
        return key
    }
}

extension HTTPField.Name {
    fileprivate static var idempotencyKey: Self { .init("Idempotency-Key")! }
}

extension RequestContext {
    /// A percent-decoded part of the path.
    func path(_ name: String) throws(Problem) -> String {
        guard let raw = parameters.get(name), let text = PercentEncoding.decode(raw), !text.utf8.contains(0) else {
            throw Problem(.invalidRequest, "the path is not percent-encoded UTF-8")
        }
        return text
    }
}

/// The words of a parameter that is true or false.
private enum Flag: String, CaseIterable {
    case `true`, `false`
}
