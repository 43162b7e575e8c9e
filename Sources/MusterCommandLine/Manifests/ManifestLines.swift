import FoundationEssentials
import MusterAPI
import MusterCore

/// Turns a manifest of URLs and tasks into NDJSON of tasks, line by line: a line in, a line out, so that the coordinator
/// names the very line that the caller wrote. Sans-IO.
struct ManifestLines {
    /// The keys of the tasks that are passed on; other tasks become blank lines.
    private let chosen: Set<String>?
    private let names: [Int: String]
    private let places: [String: DestinationPath]
    private var number = 0
    private var partial: [UInt8] = []

    /// A converter at the first line.
    ///
    /// - Parameters:
    ///   - chosen: the keys of the tasks that are passed on; all when absent.
    ///   - names: the paths of lines that are URLs, if their URLs suggest other paths; by line, from 1.
    ///   - places: the paths of files that have another path by now, by the keys of their tasks.
    init(chosen: Set<String>? = nil, names: [Int: String] = [:], places: [String: DestinationPath] = [:]) {
        self.chosen = chosen
        self.names = names
        self.places = places
    }

    /// Converts the lines that are complete now; each ends with a newline.
    mutating func convert(_ bytes: some Sequence<UInt8>) throws -> [[UInt8]] {
        var lines: [[UInt8]] = []
        var rest = Array(bytes)[...]
        while let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
            partial += rest[..<end]
            lines.append(try line())
            rest = rest[(end + 1)...]
        }
        partial += rest
        return lines
    }

    /// Converts the last line if it has no newline.
    mutating func finish() throws -> [[UInt8]] {
        partial.isEmpty ? [] : [try line()]
    }

    private mutating func line() throws -> [UInt8] {
        number += 1
        defer { partial.removeAll(keepingCapacity: true) }
        if partial.last == UInt8(ascii: "\r") { partial.removeLast() }
        let newline = [UInt8(ascii: "\n")]
        guard let first = partial.first(where: { $0 != UInt8(ascii: " ") && $0 != UInt8(ascii: "\t") }),
            first != UInt8(ascii: "#")
        else {
            return newline
        }
        if first == UInt8(ascii: "{") {
            guard chosen != nil || !places.isEmpty else { return partial + newline }
            let request = try JSONDecoder().decode(TaskRequest.self, from: Data(partial))
            let key = try request.validated().key
            guard chosen?.contains(key) != false else { return newline }
            return places[key] == nil ? partial + newline : try Self.line(request, places: places)
        }
        let text = String(decoding: partial, as: UTF8.self)
        let url = text.split(whereSeparator: { $0 == " " || $0 == "\t" }).joined(separator: " ")
        var request = TaskRequest(typed: url)
        request.path = names[number]
        return try Self.line(request, chosen: chosen, places: places)
    }

    /// A task as a line; a blank one if it is not chosen.
    static func line(
        _ request: TaskRequest, chosen: Set<String>? = nil, places: [String: DestinationPath] = [:]
    ) throws -> [UInt8] {
        var request = request
        if chosen != nil || !places.isEmpty {
            let key = try request.validated().key
            guard chosen?.contains(key) != false else { return [UInt8(ascii: "\n")] }
            if let place = places[key] { (request.key, request.path) = (key, place.string) }
        }
        return Array(try JSONEncoder().encode(request)) + [UInt8(ascii: "\n")]
    }
}
