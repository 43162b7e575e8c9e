import NIOCore

/// A request, as far as a test origin needs it.
struct OriginRequest: Sendable {
    let method: String
    let target: String
    let headers: [ScriptedOrigin.Header]
    /// Its body as text: GET and HEAD have none, and the questions to a resolver are JSON.
    var body = ""

    /// The longest head that is read, and the longest body.
    static let limitBytes = 64 * 1024

    /// The result of parsing the bytes that have arrived.
    enum Parsed: Sendable {
        /// More is needed.
        case incomplete
        /// A request; its bytes have been taken from the buffer.
        case request(OriginRequest)
        /// Nothing that this origin understands.
        case malformed
    }

    /// Takes the next request from a buffer. A body is taken by its Content-Length; transfer codings are not understood.
    static func parse(_ buffer: inout ByteBuffer) -> Parsed {
        let view = buffer.readableBytesView
        let end: [UInt8] = [13, 10, 13, 10]
        guard let range = view.firstRange(of: end) else {
            return view.count > limitBytes ? .malformed : .incomplete
        }
        let text = String(decoding: view[view.startIndex..<range.lowerBound], as: UTF8.self)
        // "\r\n" is a single Character, so that lines are split at it.
        let lines = text.split(separator: "\r\n")
        let words = lines.first?.split(separator: " ") ?? []
        guard words.count == 3, words[2].hasPrefix("HTTP/1.") else { return .malformed }
        var headers: [ScriptedOrigin.Header] = []
        for line in lines.dropFirst() {
            guard let colon = line.firstIndex(of: ":") else { return .malformed }
            let value = line[line.index(after: colon)...]
            headers.append(ScriptedOrigin.Header(String(line[..<colon]), trimmed(value)))
        }
        var request = OriginRequest(method: String(words[0]), target: String(words[1]), headers: headers)
        let length = request.header("Content-Length").map { Int($0) ?? -1 } ?? 0
        guard (0...limitBytes).contains(length), request.header("Transfer-Encoding") == nil else { return .malformed }
        guard view.endIndex - range.upperBound >= length else { return .incomplete }
        request.body = String(decoding: view[range.upperBound..<(range.upperBound + length)], as: UTF8.self)
        buffer.moveReaderIndex(to: range.upperBound + length)
        return .request(request)
    }

    /// The value of the first field of that name, without regard to case.
    func header(_ name: String) -> String? {
        headers.first { $0.name.lowercased() == name.lowercased() }?.value
    }

    /// The target without its query.
    var path: String { String(target.prefix { $0 != "?" }) }

    /// A parameter of the query, not decoded.
    func parameter(_ name: String) -> String? {
        guard let mark = target.firstIndex(of: "?") else { return nil }
        return target[target.index(after: mark)...].split(separator: "&")
            .first { $0.hasPrefix("\(name)=") }
            .map { String($0.dropFirst(name.count + 1)) }
    }

    /// A cookie's value.
    func cookie(_ name: String) -> String? {
        headers.filter { $0.name.lowercased() == "cookie" }
            .flatMap { $0.value.split(separator: ";") }
            .map { $0.drop { $0 == " " } }
            .first { $0.hasPrefix("\(name)=") }
            .map { String($0.dropFirst(name.count + 1)) }
    }

    private static func trimmed(_ value: Substring) -> String {
        let start = value.drop { $0 == " " || $0 == "\t" }
        let end = start.lastIndex { $0 != " " && $0 != "\t" }
        return end.map { String(start[...$0]) } ?? ""
    }
}
