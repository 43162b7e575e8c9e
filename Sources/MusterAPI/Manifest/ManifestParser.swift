import FoundationEssentials
public import MusterCore

/// Reads a manifest line by line: a URL per line, or NDJSON, one task per line. Blank lines and lines that begin with `#`
/// are skipped. Sans-IO: bytes go in as they come, tasks come out; no more than one line is held.
///
/// A bad line is thrown, unless the caller gives a closure for refusals: then the closure is called, and the parser goes on with the next line.
public struct ManifestParser {
    /// One task of the manifest.
    public struct Entry: Sendable {
        /// The line of the task, counted from 1.
        public let line: Int
        /// The task, checked.
        public let task: TaskSpecification
        /// How its sources are asked, if the task itself says so; checked too.
        public let fetch: FetchOptions?
        /// Whether the line is only a URL, so that the file has no name from the user.
        public let isURL: Bool
    }

    /// Which lines are allowed.
    public enum Form: Sendable {
        /// URLs and tasks in JSON, as people write them.
        case urlsOrTasks
        /// Only tasks in JSON: `application/x-ndjson`.
        case tasks
    }

    private let form: Form
    private let names: [Int: String]
    private let decoder = JSONDecoder()
    private var partial: [UInt8] = []
    private var line = 0
    /// Whether the line was refused for its length, and its rest is skipped.
    private var isOverlong = false

    /// A parser at the first line.
    ///
    /// - Parameter names: the paths for lines that are URLs, by line, if they differ from what the URLs suggest.
    public init(form: Form, names: [Int: String] = [:]) {
        self.form = form
        self.names = names
    }

    /// Called for a line that is refused. If it throws, the parser must not be used any more.
    public typealias Refused = (InputRefusal) throws(InputRefusal) -> Void

    /// Takes the next bytes and returns the tasks whose lines are complete now.
    ///
    /// - Parameter refused: called for each bad task, with its line.
    public mutating func parse(
        _ bytes: some Sequence<UInt8>, refused: Refused = { refusal throws(InputRefusal) in throw refusal }
    ) throws(InputRefusal) -> [Entry] {
        var entries: [Entry] = []
        var rest = Array(bytes)[...]
        while let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
            try take(rest[..<end], refused)
            if let entry = try endLine(refused) { entries.append(entry) }
            rest = rest[(end + 1)...]
        }
        try take(rest, refused)
        return entries
    }

    private mutating func take(_ bytes: ArraySlice<UInt8>, _ refused: Refused) throws(InputRefusal) {
        guard !isOverlong else { return }
        guard partial.count + bytes.count <= Int(Limits.manifestLine.bytes) else {
            (isOverlong, partial) = (true, [])
            return try refused(
                InputRefusal(pointer: "", line: line + 1, reason: "the line is longer than \(Limits.manifestLine)"))
        }
        partial += bytes
    }

    /// Takes the end of the manifest; a last line needs no newline.
    public mutating func finish(
        refused: Refused = { refusal throws(InputRefusal) in throw refusal }
    ) throws(InputRefusal) -> [Entry] {
        partial.isEmpty ? [] : try endLine(refused).map { [$0] } ?? []
    }

    private mutating func endLine(_ refused: Refused) throws(InputRefusal) -> Entry? {
        line += 1
        if partial.last == UInt8(ascii: "\r") { partial.removeLast() }
        defer {
            partial.removeAll(keepingCapacity: true)
            isOverlong = false
        }
        guard let first = partial.first(where: { $0 != UInt8(ascii: " ") && $0 != UInt8(ascii: "\t") }) else {
            return nil
        }
        if form == .urlsOrTasks, first == UInt8(ascii: "#") { return nil }
        if first == UInt8(ascii: "{"), let task = PlainTaskReader.task(partial) {
            return Entry(line: line, task: task, fetch: nil, isURL: false)
        }
        do {
            let request = try request(first: first)
            return Entry(
                line: line, task: try request.validated(), fetch: request.fetch, isURL: first != UInt8(ascii: "{"))
        } catch {
            let reason = first == UInt8(ascii: "{") || form != .urlsOrTasks ? nil : otherLine()
            try refused((reason.map { InputRefusal(pointer: "", reason: $0) } ?? error).onLine(line))
            return nil
        }
    }

    /// The same as `otherFormat` for a line that was refused, so that it may cost more.
    private func otherLine() -> String? {
        guard let line = String(validating: partial, as: UTF8.self) else { return nil }
        let parts = line.split(separator: "\t").map { $0.drop { $0 == " " } }.filter { !$0.isEmpty }
        if parts.count > 1, parts.allSatisfy({ $0.contains("://") }) {
            return "has several URLs, as the mirrors in an input file of aria2; here they are written \(Self.mirrors)"
        }
        if let option = line.firstMatch(of: /^-{0,2}([a-z][a-z0-9-]*)[ \t]*=/)?.output.1 {
            return "is the option \"\(option)\" of a configuration file of curl; a list has the URL alone on its line, "
                + "and a file with a name of its own is written \(Self.named)"
        }
        return nil
    }

    private static let named = #"{"urls": ["https://example.org/a"], "path": "b"}"#
    private static let mirrors = #"{"urls": ["https://a.example/f", "https://b.example/f"]}"#

    /// The format of a line that belongs to another program's list, and how to write the line here; `nil` for other lines.
    ///
    /// - Parameters:
    ///   - first: the first byte that is not a space.
    private static func otherFormat(_ line: String, first: UInt8) -> String? {
        if "[],".utf8.contains(first) {
            return
                "is of a JSON array; a list has a URL, or a task as JSON, on each line: jq -cr '.[]' makes it of an array"
        }
        // In an input file of aria2 the options of a download are indented. Most lines are not indented, so they cost no search.
        if line.utf8.first != first, let option = line.firstMatch(of: /^[ \t]+([a-z0-9-]+)=/)?.output.1 {
            return
                "is the option \"\(option)\" of an input file of aria2; a file with a name of its own is written \(named)"
        }
        if first == UInt8(ascii: "<") {
            return
                "is of XML, such as a Metalink file; a list has a URL, or a task as JSON with its mirrors, on each line: \(mirrors)"
        }
        return nil
    }

    private func request(first: UInt8) throws(InputRefusal) -> TaskRequest {
        guard first == UInt8(ascii: "{") else {
            guard form == .urlsOrTasks else { throw InputRefusal(pointer: "", reason: "is not a JSON object") }
            guard let text = String(validating: partial, as: UTF8.self) else {
                throw InputRefusal(pointer: "", reason: "is not UTF-8")
            }
            if let reason = Self.otherFormat(text, first: first) { throw InputRefusal(pointer: "", reason: reason) }
            var request = TaskRequest(
                typed: text.split(whereSeparator: { $0 == " " || $0 == "\t" }).joined(separator: " "))
            request.path = names[line]
            return request
        }
        try JSONDepth.check(partial)
        do {
            return try decoder.decode(TaskRequest.self, from: Data(partial))
        } catch let error as DecodingError {
            throw InputRefusal(error)
        } catch {
            throw InputRefusal(pointer: "", reason: "can't be read")
        }
    }
}
