import FoundationEssentials
import MusterAPI
import MusterCore

/// The tasks of a request: the lines of a manifest, then the URLs of the command line.
struct TaskList: Sendable {
    /// Facts about all tasks of a list.
    struct Survey: Sendable {
        /// How many tasks there are.
        var count = 0
        /// How long the manifest is, in bytes.
        var bytes: Int64 = 0
        /// Identifies the content, whatever its order, if that was asked for.
        var identity = RequestIdentity()
        /// The hosts of tasks that have no credentials of their own; not all of them if there are more than 1,000.
        var hosts: Set<String> = []

        /// Whether it fits into one ordinary request.
        var isSmall: Bool { count < 1_000 && bytes < 1 << 20 }

        /// The most hosts that are kept.
        private static let mostHosts = 1_000

        /// Counts a task.
        fileprivate mutating func add(_ task: TaskSpecification, fetch: FetchOptions?) {
            count += 1
            guard fetch?.credentials == nil, hosts.count < Self.mostHosts else { return }
            for source in task.sources { hosts.insert(source.host) }
        }
    }

    /// A task, and the line of the manifest it comes from.
    struct Item: Sendable {
        /// The task as it is submitted.
        let request: TaskRequest
        /// The line, counted from 1; `nil` for URLs of the command line.
        let line: Int?
    }

    private let manifest: ManifestFile?
    private let urls: [TaskRequest]
    /// The paths of lines of the manifest that are URLs, if their URLs suggest other paths; by line.
    private let names: [Int: String]
    /// The paths of files that are elsewhere than the list puts them, by the keys of their tasks. The survey does not include them.
    var places: [String: DestinationPath] = [:]
    /// Facts about the whole list.
    let survey: Survey
    /// Whether the name of the single URL's file was typed.
    private let isNamed: Bool
    /// Whether some URLs have numbered names, since other tasks have their suggested names.
    let isNumbered: Bool

    /// A list whose tasks are all checked. URLs whose last segments are the same get numbered names, as files do with `--if-exists rename`. URLs of
    /// tasks in JSON don't, since such tasks can name their paths.
    ///
    /// - Parameters:
    ///   - digest: the digest that a single URL's content must have.
    ///   - name: the path of a single URL's file.
    ///   - identifies: whether the survey computes the identity of the content, as it does for `get`.
    /// - Throws: `CommandFailure.usage` for an invalid URL of the command line, and for a digest or a name without exactly one URL;
    ///   `CommandFailure.manifest` with the line and the reason, as the coordinator would say it.
    init(
        manifest: ManifestFile?, urls: [String], digest: DigestArgument? = nil, name: String? = nil,
        identifies: Bool = true
    ) throws {
        if digest != nil, manifest != nil || urls.count != 1 {
            throw CommandFailure.usage(
                "--digest is for exactly one URL; a manifest names the digests of its tasks itself")
        }
        if let name {
            guard manifest == nil, urls.count == 1 else {
                throw CommandFailure.usage(
                    "--output names the file of exactly one URL; lines of a manifest name theirs: {\"urls\": [\"https://…\"], \"path\": \"…\"}"
                )
            }
            if name == "-" {
                throw CommandFailure.usage(
                    "get stores files durably and writes none to standard output: name a file, which --output ./- does for one called \"-\", or use curl"
                )
            }
            do throws(DestinationPath.Refusal) {
                _ = try DestinationPath(validating: Self.path(name))
            } catch {
                let reason =
                    error == .absolute ? "\(Self.mustBeRelative): -d DIR -o NAME" : error.description
                throw CommandFailure.usage(
                    "--output names a file below the directory (-d), and \"\(name)\" does not: \(reason)")
            }
        }
        var requests: [TaskRequest] = []
        var arguments: [TaskSpecification] = []
        for url in urls {
            var request = TaskRequest(typed: url)
            request.digests = digest?.document
            request.path = name.map(Self.path)
            do throws(InputRefusal) {
                arguments.append(try request.validated())
            } catch {
                throw CommandFailure.usage("\(TaskRequest.shown(url)): \(error.reason)")
            }
            requests.append(request)
        }
        var survey = Survey()
        // Only a hash of each name is kept in memory, however long the list is.
        var paths = arguments.map(\.path.string.hashValue)
        var canClash = !urls.isEmpty
        if let manifest {
            survey.bytes = try manifest.size()
            try Self.entries(of: manifest, isOfGet: identifies) { entry in
                survey.add(entry.task, fetch: entry.fetch)
                if identifies { survey.identity.add(entry.task, fetch: entry.fetch) }
                paths.append(entry.task.path.string.hashValue)
                canClash = canClash || entry.isURL
            }
        }
        let numbered = canClash ? try Self.numbered(paths, manifest, arguments) : [:]
        var names: [Int: String] = [:]
        for (place, name) in numbered {
            switch place {
            case .line(let line): names[line] = name
            case .argument(let index): requests[index].path = name
            }
        }
        if identifies, !names.isEmpty, let manifest {
            survey.identity = RequestIdentity()
            try Self.entries(of: manifest, names: names) { survey.identity.add($0.task, fetch: $0.fetch) }
        }
        for request in requests {
            let task = try request.validated()
            survey.add(task, fetch: request.fetch)
            if identifies { survey.identity.add(task, fetch: request.fetch) }
        }
        (self.manifest, self.urls, self.names, self.survey) = (manifest, requests, names, survey)
        (isNamed, isNumbered) = (name != nil, !numbered.isEmpty)
    }

    /// The path that a typed name means: `./a` is `a`.
    private static func path(_ name: String) -> String {
        name.hasPrefix("./") ? path(String(name.dropFirst(2))) : name
    }

    /// The numbered names of URLs that share their suggested name with another task.
    ///
    /// - Parameters:
    ///   - paths: the hashes of all names.
    ///   - arguments: the tasks of the command line.
    private static func numbered(
        _ paths: [Int], _ manifest: ManifestFile?, _ arguments: [TaskSpecification]
    ) throws -> [SharedNames.Place: String] {
        let paths = paths.sorted()
        let shared = Set(zip(paths, paths.dropFirst()).lazy.filter { $0 == $1 }.map { $0.0 })
        guard !shared.isEmpty else { return [:] }
        var names = SharedNames()
        func add(_ task: TaskSpecification, at place: SharedNames.Place?) {
            guard shared.contains(task.path.string.hashValue) else { return }
            if let place {
                names.add(task.sources[0].string, at: place, path: task.path)
            } else {
                names.take(task)
            }
        }
        if let manifest {
            try entries(of: manifest) { add($0.task, at: $0.isURL ? .line($0.line) : nil) }
        }
        for (index, task) in arguments.enumerated() { add(task, at: .argument(index)) }
        // Two names may have one hash. Then a number is skipped.
        return names.numbered { paths.containsSorted($0.hashValue) }
    }

    /// Reads a manifest line by line, without keeping it in memory.
    ///
    /// - Throws: `CommandFailure.manifest` with the lines and the reasons, as the coordinator would say them.
    private static func entries(
        of manifest: ManifestFile, names: [Int: String] = [:], isOfGet: Bool = false,
        _ body: (ManifestParser.Entry) -> Void
    ) throws {
        var parser = ManifestParser(form: .urlsOrTasks, names: names)
        var refusals = ManifestRefusals()
        func refuse(_ refusal: InputRefusal) { refusals.add(isOfGet ? inWordsOfGet(refusal) : refusal) }
        var offset: Int64 = 0
        while true {
            let bytes = try manifest.read(at: offset)
            let entries = bytes.isEmpty ? try parser.finish(refused: refuse) : try parser.parse(bytes, refused: refuse)
            if refusals.count == 0 { for entry in entries { body(entry) } }
            offset += Int64(bytes.count)
            guard bytes.isEmpty else { continue }
            guard refusals.count == 0 else { throw CommandFailure.manifest(refusals, manifest: manifest.name) }
            return
        }
    }

    /// What is said of an absolute path by `get`, whose sink is the directory of its option -d.
    private static let mustBeRelative = "the path must be relative to the directory of -d"

    /// A refusal of a line as `get` says it: its callers know of no sink.
    private static func inWordsOfGet(_ refusal: InputRefusal) -> InputRefusal {
        guard refusal.reason == DestinationPath.Refusal.absolute.description else { return refusal }
        return InputRefusal(pointer: refusal.pointer, line: refusal.line, reason: mustBeRelative)
    }

    /// Whether nothing was given at all.
    var isAbsent: Bool { manifest == nil && urls.isEmpty }

    /// Calls `body` with every task, moved to its place, and the task's own options.
    func visit(_ body: (TaskSpecification, FetchOptions?) -> Void) throws {
        func show(_ task: TaskSpecification, _ fetch: FetchOptions?) {
            body(places[task.key].map { task.moved(to: $0) } ?? task, fetch)
        }
        if let manifest { try Self.entries(of: manifest, names: names) { show($0.task, $0.fetch) } }
        for request in urls { show(try request.validated(), request.fetch) }
    }

    /// Calls `body` with every task at the path that the list gives it, and the name that its URL suggests; `nil` if the task names its path itself.
    func visitNames(_ body: (TaskSpecification, DestinationPath?) -> Void) throws {
        func show(_ task: TaskSpecification, isURL: Bool) {
            let name = isURL ? DestinationPath.suggested(byURLPath: task.sources[0].path) : nil
            body(task, name.flatMap { try? DestinationPath(validating: $0) })
        }
        if let manifest { try Self.entries(of: manifest, names: names) { show($0.task, isURL: $0.isURL) } }
        for request in urls { show(try request.validated(), isURL: !isNamed) }
    }

    /// Lines about the URLs that are stored under other names than they suggest: one for each, at most ``SharedNames/told``, and one with the number
    /// of the others.
    ///
    /// - Parameter kept: the keys of tasks whose files keep the names that they had before; they get no line.
    func renamings(besides kept: Set<String> = []) throws -> [String] {
        guard isNumbered || !places.isEmpty else { return [] }
        var lines: [String] = []
        var told: Set<String> = []
        try visitNames { task, suggested in
            let path = places[task.key] ?? task.path
            guard let suggested, suggested != path, !kept.contains(task.key), told.insert(task.key).inserted,
                told.count <= SharedNames.told
            else { return }
            lines.append("\(suggested) is the name of another one; \(task.sources[0].string) is stored as \(path)")
        }
        let more = told.count - SharedNames.told
        if more > 0 { lines.append("… and \(more) more have numbered names") }
        return lines
    }

    /// All tasks at once: for lists that are small.
    func items(chosen: Set<String>? = nil) throws -> [Item] {
        var items: [Item] = []
        var number = 0
        func take(_ line: [UInt8], number: Int?) throws {
            guard line.count > 1 else { return }
            items.append(Item(request: try JSONDecoder().decode(TaskRequest.self, from: Data(line)), line: number))
        }
        if let manifest {
            var lines = ManifestLines(chosen: chosen, names: names, places: places)
            var offset: Int64 = 0
            while true {
                let bytes = try manifest.read(at: offset)
                for line in bytes.isEmpty ? try lines.finish() : try lines.convert(bytes) {
                    number += 1
                    try take(line, number: number)
                }
                offset += Int64(bytes.count)
                if bytes.isEmpty { break }
            }
        }
        for request in urls {
            try take(try ManifestLines.line(request, chosen: chosen, places: places), number: nil)
        }
        return items
    }

    /// All tasks as NDJSON, read only as fast as the coordinator takes them.
    func stream(chosen: Set<String>? = nil) -> AsyncThrowingStream<[UInt8], any Error> {
        let lines = ManifestLines(chosen: chosen, names: names, places: places)
        let reader = Reader(manifest: manifest, urls: urls, lines: lines, chosen: chosen, places: places)
        return AsyncThrowingStream { try await reader.next() }
    }

    /// Reads the list part by part, and keeps the position up to which it was sent.
    private actor Reader {
        private let manifest: ManifestFile?
        private var urls: ArraySlice<TaskRequest>
        private let chosen: Set<String>?
        private let places: [String: DestinationPath]
        private var lines: ManifestLines
        private var offset: Int64 = 0
        private var isManifestRead: Bool

        init(
            manifest: ManifestFile?, urls: [TaskRequest], lines: ManifestLines, chosen: Set<String>?,
            places: [String: DestinationPath]
        ) {
            self.manifest = manifest
            self.urls = urls[...]
            self.chosen = chosen
            self.places = places
            self.lines = lines
            isManifestRead = manifest == nil
        }

        func next() throws -> [UInt8]? {
            while let manifest, !isManifestRead {
                let bytes = try manifest.read(at: offset)
                offset += Int64(bytes.count)
                isManifestRead = bytes.isEmpty
                let part = (bytes.isEmpty ? try lines.finish() : try lines.convert(bytes)).flatMap { $0 }
                // Bytes from the middle of a long line give nothing to send yet, and some transports take an empty part for the end.
                if !part.isEmpty { return part }
            }
            return try urls.popFirst().map { try ManifestLines.line($0, chosen: chosen, places: places) }
        }
    }
}

extension [Int] {
    /// Whether the array, which must be sorted, contains a number.
    fileprivate func containsSorted(_ number: Int) -> Bool {
        var range = indices
        while !range.isEmpty {
            let middle = range.lowerBound + range.count / 2
            if self[middle] == number { return true }
            range = self[middle] < number ? middle + 1..<range.upperBound : range.lowerBound..<middle
        }
        return false
    }
}
