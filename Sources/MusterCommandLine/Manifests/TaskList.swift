import FoundationEssentials
import MusterAPI
import MusterCore

/// The tasks of a request: the lines of a manifest, then the URLs of the command line.
struct TaskList: Sendable {
    /// What a look at all of it found.
    struct Survey: Sendable {
        /// How many tasks there are.
        var count = 0
        /// How long the manifest is, in bytes.
        var bytes: Int64 = 0
        /// Stands for the content, whatever its order, if that was asked for.
        var identity = RequestIdentity()

        /// Whether it fits into one ordinary request.
        var isSmall: Bool { count < 1_000 && bytes < 1 << 20 }
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
    /// Which URLs of the command line have got a numbered name, since another one has theirs: a line for each.
    let renamings: [String]

    /// A list. URLs of the command line whose last segments are the same get numbered names, as files do with `--if-exists rename`.
    ///
    /// - Parameters:
    ///   - digest: what a single URL's content must have.
    /// - Throws: `CommandFailure.usage` for a URL of the command line that is none, and for a digest without exactly one;
    ///   `CommandFailure.manifest` for a manifest that the coordinator would refuse.
    init(manifest: ManifestFile?, urls: [String], digest: DigestArgument? = nil) throws {
        if digest != nil, manifest != nil || urls.count != 1 {
            throw CommandFailure.usage(
                "--digest is for exactly one URL; a manifest names the digests of its tasks itself")
        }
        self.manifest = manifest
        var names = SharedNames()
        for url in urls {
            var request = TaskRequest(typed: url)
            request.digests = digest?.document
            do throws(InputRefusal) {
                names.add(request, path: try request.validated().path)
            } catch {
                throw CommandFailure.usage("\(TaskRequest.shown(url)): \(error.reason)")
            }
        }
        if let manifest, !urls.isEmpty {
            try Self.entries(of: manifest) { names.take($0.task) }
        }
        (self.urls, renamings) = names.numbered()
    }

    /// Reads a manifest line by line, holding none of it.
    ///
    /// - Throws: `CommandFailure.manifest` with the line and the reason, as the coordinator would say it.
    private static func entries(of manifest: ManifestFile, _ body: (ManifestParser.Entry) -> Void) throws {
        var parser = ManifestParser(form: .urlsOrTasks)
        var offset: Int64 = 0
        do {
            while true {
                let bytes = try manifest.read(at: offset)
                for entry in bytes.isEmpty ? try parser.finish() : try parser.parse(bytes) { body(entry) }
                offset += Int64(bytes.count)
                if bytes.isEmpty { return }
            }
        } catch let refusal as InputRefusal {
            throw CommandFailure(refusal, manifest: manifest.name)
        }
    }

    /// Whether nothing was given at all.
    var isAbsent: Bool { manifest == nil && urls.isEmpty }

    /// Checks every task, holding none.
    ///
    /// - Parameter identifies: whether the survey says what stands for the content.
    /// - Throws: `CommandFailure.manifest` with the line and the reason, as the coordinator would say it.
    func survey(identifies: Bool = true) throws -> Survey {
        var survey = Survey()
        try visit { task, fetch in
            survey.count += 1
            if identifies { survey.identity.add(task, fetch: fetch) }
        }
        if let manifest { survey.bytes = try manifest.size() }
        return survey
    }

    /// Shows every task, checked, with the options that are its own.
    ///
    /// - Throws: what ``survey(identifies:)`` throws.
    func visit(_ body: (TaskSpecification, FetchOptions?) -> Void) throws {
        if let manifest { try Self.entries(of: manifest) { body($0.task, $0.fetch) } }
        for request in urls { body(try request.validated(), request.fetch) }
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
            var lines = ManifestLines(chosen: chosen)
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
        for request in urls { try take(try ManifestLines.line(request, chosen: chosen), number: nil) }
        return items
    }

    /// All tasks as NDJSON, read as the coordinator takes it.
    func stream(chosen: Set<String>? = nil) -> AsyncThrowingStream<[UInt8], any Error> {
        let reader = Reader(manifest: manifest, urls: urls, chosen: chosen)
        return AsyncThrowingStream { try await reader.next() }
    }

    /// The place in the list up to which it was sent.
    private actor Reader {
        private let manifest: ManifestFile?
        private var urls: ArraySlice<TaskRequest>
        private let chosen: Set<String>?
        private var lines: ManifestLines
        private var offset: Int64 = 0
        private var isManifestRead: Bool

        init(manifest: ManifestFile?, urls: [TaskRequest], chosen: Set<String>?) {
            self.manifest = manifest
            self.urls = urls[...]
            self.chosen = chosen
            lines = ManifestLines(chosen: chosen)
            isManifestRead = manifest == nil
        }

        func next() throws -> [UInt8]? {
            while let manifest, !isManifestRead {
                let bytes = try manifest.read(at: offset)
                offset += Int64(bytes.count)
                isManifestRead = bytes.isEmpty
                let part = (bytes.isEmpty ? try lines.finish() : try lines.convert(bytes)).flatMap { $0 }
                // A chunk within one long line has nothing to send yet, and an empty part would end some transports.
                if !part.isEmpty { return part }
            }
            return try urls.popFirst().map { try ManifestLines.line($0, chosen: chosen) }
        }
    }
}
