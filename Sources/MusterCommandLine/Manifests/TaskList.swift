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
        /// Stands for the content, whatever its order.
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

    /// A list.
    ///
    /// - Parameters:
    ///   - digest: what a single URL's content must have.
    /// - Throws: `CommandFailure.usage` for a URL of the command line that is none, and for a digest without exactly one.
    init(manifest: ManifestFile?, urls: [String], digest: DigestArgument? = nil) throws(CommandFailure) {
        if digest != nil, manifest != nil || urls.count != 1 {
            throw .usage("--digest is for exactly one URL; a manifest names the digests of its tasks itself")
        }
        self.manifest = manifest
        self.urls = urls.map { TaskRequest(urls: [$0], digests: digest?.document) }
        for request in self.urls {
            do {
                _ = try request.validated()
            } catch {
                throw .usage("\(request.urls[0]): \(error.reason)")
            }
        }
    }

    /// Whether nothing was given at all.
    var isAbsent: Bool { manifest == nil && urls.isEmpty }

    /// Checks every task, holding none.
    ///
    /// - Throws: `CommandFailure.refused` with the line and the reason, as the coordinator would say it.
    func survey() throws -> Survey {
        var survey = Survey()
        do {
            if let manifest {
                var parser = ManifestParser(form: .urlsOrTasks)
                while true {
                    let bytes = try manifest.read(at: survey.bytes)
                    let entries = bytes.isEmpty ? try parser.finish() : try parser.parse(bytes)
                    for entry in entries {
                        survey.count += 1
                        survey.identity.add(entry.task, fetch: entry.fetch)
                    }
                    survey.bytes += Int64(bytes.count)
                    if bytes.isEmpty { break }
                }
            }
            for request in urls {
                survey.count += 1
                survey.identity.add(try request.validated(), fetch: request.fetch)
            }
            return survey
        } catch let refusal as InputRefusal {
            throw CommandFailure(refusal)
        }
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
