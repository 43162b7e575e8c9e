public import MusterCore
import MusterPostgres

/// A checked task to be added, with the JSON of its parts.
public struct StagedTask: Sendable {
    /// The line of the manifest, counted from 1, or the place in the array.
    public let line: Int64
    /// The task.
    public let task: TaskSpecification
    /// Expected digests as a JSON object.
    public let digests: String?
    /// Metadata as JSON.
    public let metadata: String?
    /// Headers as a JSON object.
    public let headers: String?
    /// The request options of its sources, as a JSON object; may hold secrets.
    public let options: String?

    /// A task to be added.
    public init(
        line: Int64, task: TaskSpecification, digests: String?, metadata: String?, headers: String?,
        options: String? = nil
    ) {
        self.line = line
        self.task = task
        self.digests = digests
        self.metadata = metadata
        self.headers = headers
        self.options = options
    }
}

/// Tasks that are staged together and are to be added to a group.
public struct Upload: Sendable {
    /// Its number.
    public let id: Int64
    /// How many tasks were staged.
    public fileprivate(set) var count: Int64 = 0
    /// The staged tasks that are not written yet. A small number of tasks is written by the transaction that adds them.
    fileprivate var held: [StagedTask] = []

    /// The most tasks that are held in memory.
    fileprivate static let maximumHeld = 1_000
}

/// What an addition did.
public struct Addition: Sendable, Hashable, Codable {
    /// Tasks that are new.
    public let added: Int64
    /// Tasks whose key was there already.
    public let existing: Int64

    /// What an addition did.
    public init(added: Int64, existing: Int64) {
        self.added = added
        self.existing = existing
    }
}

extension Store {
    /// Begins an upload, into which tasks are staged. They are not visible until they are added.
    public func beginUpload() async throws -> Upload {
        Upload(id: try await query("SELECT nextval('upload_ids') AS upload")[0].decode("upload"))
    }

    /// Stages tasks in an upload.
    public func stage(_ tasks: [StagedTask], upload: inout Upload) async throws {
        upload.held += tasks
        upload.count += Int64(tasks.count)
        if upload.held.count > Upload.maximumHeld { try await write(&upload) }
    }

    /// Writes the tasks that an upload holds.
    public func write(_ upload: inout Upload) async throws {
        let written = upload
        // Not repeated when its outcome is unknown: the lines might be written twice. The upload is given up instead.
        try await pool.withConnection { try await Self.writeHeld(of: written, on: $0) }
        upload.held = []
    }

    private static func writeHeld(of upload: Upload, on connection: PostgresConnection) async throws {
        guard !upload.held.isEmpty else { return }
        _ = try await connection.copyIn(
            into: "staged_tasks",
            columns: [
                "upload", "line", "key", "has_own_key", "path", "priority", "size", "digests", "metadata", "headers",
                "urls",
                "origins", "options", "content_type", "deadline_ms",
            ]
        ) { writer in
            for staged in upload.held {
                try await writer.write(
                    upload.id, staged.line, staged.task.key, staged.task.hasOwnKey, staged.task.path.string,
                    staged.task.priority,
                    staged.task.size, staged.digests.map { PostgresJSON($0) },
                    staged.metadata.map { PostgresJSON($0) },
                    staged.headers.map { PostgresJSON($0) }, staged.task.sources.map(\.string),
                    staged.task.sources.map(\.origin), staged.options.map { PostgresJSON($0) },
                    staged.task.contentType, staged.task.deadline?.milliseconds)
            }
        }
    }

    /// Writes the last tasks of a large upload, and makes its origins known in a separate transaction: other uploads may
    /// add the same origins while the tasks are added.
    func complete(_ upload: Upload) async throws -> Upload {
        guard upload.count > upload.held.count else { return upload }
        var upload = upload
        try await write(&upload)
        _ = try await write("SELECT add_origins(\(upload.id))::text", waking: [])
        return upload
    }

    /// Deletes an upload that is not needed any more.
    public func abandon(_ upload: Upload) async throws {
        _ = try await query("DELETE FROM staged_tasks WHERE upload = \(upload.id)")
    }

    /// Adds an upload's tasks to a group, all or none.
    ///
    /// - Parameters:
    ///   - reopening: whether a group that is sealed or has finished is opened if any of the tasks is new to it.
    public func addTasks(_ upload: Upload, to group: String, reopening: Bool = false) async throws -> Addition {
        let id = try await groupID(group)
        let upload = try await complete(upload)
        while true {
            do {
                let addition = try await once(waking: [.work, .events]) { connection in
                    try await Self.add(
                        upload, to: id, reopening: reopening, firstChunk: policy.firstChunk, on: connection)
                }
                // The staged rows of a repeated request have not been consumed.
                if upload.count > upload.held.count { try await abandon(upload) }
                return addition
            } catch is UnfinishedCancel {
                try await finishCancel(of: id)
            }
        }
    }

    /// A cancel of the group has to be finished before anything is added.
    private struct UnfinishedCancel: Error {}

    /// Adds an upload's tasks. If it throws any error, the transaction must not be committed.
    static func add(
        _ upload: Upload, to group: GroupID, reopening: Bool, firstChunk: Int64, on connection: PostgresConnection
    ) async throws -> Addition {
        try await writeHeld(of: upload, on: connection)
        let row: PostgresRow
        do {
            row = try await query(
                """
                SELECT outcome, line, other_line, subject, url, other, added, existing
                FROM add_tasks(\(group), \(upload.id), \(upload.count), \(firstChunk), \(reopening))
                """, within: longLimit, on: connection)[0]
        } catch let error as PostgresError where error.constraint == "tasks_destination_unique" {
            // Another transaction's task took the destination between the check and the index.
            throw Refusal.destinationTaken(nil, line: nil, by: nil)
        }
        switch try row.decode("outcome", as: AdditionOutcome.self) {
        case .added: return Addition(added: try row.decode("added"), existing: try row.decode("existing"))
        case .cancelling: throw UnfinishedCancel()
        case .duplicateKey:
            throw Refusal.duplicateKey(try row.decode("subject"), try Collision(row))
        case .otherURLs:
            throw Refusal.otherURLs(
                try row.decode("subject"), url: try row.decode("url"), existing: try row.decode("other"),
                line: try row.decode("line"))
        case .duplicatePath:
            throw Refusal.duplicatePath(try row.decode("subject"), try Collision(row))
        case .nestedPath:
            throw Refusal.nestedPath(try row.decode("subject"), try Collision(row))
        case .destinationTaken:
            throw Refusal.destinationTaken(
                try row.decode("subject"), line: try row.decode("line", as: Int64.self), by: try row.decode("other"))
        case .incomplete: throw Refusal.uploadIncomplete
        case .tooLarge: throw Refusal.groupTooLarge
        case .sealed:
            throw Refusal.groupSealed(newKey: try row.decode("subject"), line: try row.decode("line"))
        case .finished:
            throw Refusal.groupFinished(newKey: try row.decode("subject"), line: try row.decode("line"))
        case .removed: throw Refusal.noSuchGroup("")
        }
    }

    /// The outcomes of `add_tasks`; with any but `added`, nothing was added.
    private enum AdditionOutcome: String, PostgresText {
        case added, removed, incomplete, tooLarge, duplicateKey, otherURLs, duplicatePath, nestedPath, destinationTaken,
            sealed,
            finished, cancelling
    }
}

extension Store {
    /// Two lines of a manifest that exclude each other.
    public struct Collision: Hashable, Sendable {
        /// The line that is refused, counted from 1.
        public let line: Int64
        /// The earlier line that it conflicts with.
        public let otherLine: Int64
        /// The first URL of the refused line.
        public let url: String
        /// The first URL of the earlier line.
        public let otherURL: String

        /// Two lines.
        public init(line: Int64, otherLine: Int64, url: String, otherURL: String) {
            self.line = line
            self.otherLine = otherLine
            self.url = url
            self.otherURL = otherURL
        }

        fileprivate init(_ row: PostgresRow) throws {
            self.init(
                line: try row.decode("line"), otherLine: try row.decode("other_line"), url: try row.decode("url"),
                otherURL: try row.decode("other"))
        }
    }
}
