import NIOCore

/// The head of a request, as far as a test origin needs it.
struct OriginRequest: Sendable {
    let method: String
    let target: String
    let headers: [ScriptedOrigin.Header]

    /// The longest head that is read.
    static let limitBytes = 64 * 1024

    /// What bytes that have arrived make.
    enum Parsed: Sendable {
        /// More is needed.
        case incomplete
        /// A request; its bytes have been taken from the buffer.
        case request(OriginRequest)
        /// Nothing that this origin understands.
        case malformed
    }

    /// Takes the next request from a buffer. Bodies are not expected: GET and HEAD have none.
    static func parse(_ buffer: inout ByteBuffer) -> Parsed {
        let view = buffer.readableBytesView
        let end: [UInt8] = [13, 10, 13, 10]
        guard let range = view.firstRange(of: end) else {
            return view.count > limitBytes ? .malformed : .incomplete
        }
        let text = String(decoding: view[view.startIndex..<range.lowerBound], as: UTF8.self)
        buffer.moveReaderIndex(to: range.upperBound)
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
        return .request(OriginRequest(method: String(words[0]), target: String(words[1]), headers: headers))
    }

    /// The value of the first field of that name, in whatever case.
    func header(_ name: String) -> String? {
        headers.first { $0.name.lowercased() == name.lowercased() }?.value
    }

    /// The target without its query.
    var path: String { String(target.prefix { $0 != "?" }) }

    private static func trimmed(_ value: Substring) -> String {
        let start = value.drop { $0 == " " || $0 == "\t" }
        let end = start.lastIndex { $0 != " " && $0 != "\t" }
        return end.map { String(start[...$0]) } ?? ""
    }
}
