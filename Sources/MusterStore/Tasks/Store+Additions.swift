public import MusterCore
import MusterPostgres

/// A checked task on its way in, with the JSON of its parts.
public struct StagedTask: Sendable {
    /// The line of the manifest, from 1, or the place in the array.
    public let line: Int64
    /// The task.
    public let task: TaskSpecification
    /// Expected digests as a JSON object.
    public let digests: String?
    /// Metadata as JSON.
    public let metadata: String?
    /// Headers as a JSON object.
    public let headers: String?
    /// How its sources are asked, as a JSON object; may hold secrets.
    public let options: String?

    /// A task on its way in.
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

/// Tasks that were staged together, and wait to be added.
public struct Upload: Sendable, Hashable {
    /// Its number.
    public let id: Int64
    /// How many tasks were staged.
    public var count: Int64 = 0
}

/// What an addition did.
public struct Addition: Sendable, Hashable {
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
    /// A place for tasks on their way in. Nothing of them is visible until they are added.
    public func beginUpload() async throws -> Upload {
        Upload(id: try await write("SELECT nextval('upload_ids') AS upload", waking: .nobody)[0].decode("upload"))
    }

    /// Puts tasks into an upload.
    public func stage(_ tasks: [StagedTask], upload: inout Upload) async throws {
        guard !tasks.isEmpty else { return }
        // Not repeated when its outcome is unknown: the lines would be there twice, and the upload is given up instead.
        let id = upload.id
        _ = try await pool.withConnection { connection in
            try await connection.copyIn(
                into: "staged_tasks",
                columns: [
                    "upload", "line", "key", "path", "priority", "size", "digests", "metadata", "headers", "urls",
                    "origins", "options", "content_type", "deadline_ms",
                ]
            ) { writer in
                for staged in tasks {
                    try await writer.write(
                        id, staged.line, staged.task.key, staged.task.path.string, staged.task.priority,
                        staged.task.size, staged.digests.map { PostgresJSON($0) },
                        staged.metadata.map { PostgresJSON($0) },
                        staged.headers.map { PostgresJSON($0) }, staged.task.sources.map(\.string),
                        staged.task.sources.map(\.origin), staged.options.map { PostgresJSON($0) },
                        staged.task.contentType, staged.task.deadline?.milliseconds)
                }
            }
        }
        upload.count += Int64(tasks.count)
    }

    /// Drops an upload that is not wanted any more.
    public func abandon(_ upload: Upload) async throws {
        _ = try await write("DELETE FROM staged_tasks WHERE upload = \(upload.id)", waking: .nobody)
    }

    /// Adds an upload's tasks to a group, all or none.
    ///
    /// - Parameter reopening: whether a group that is sealed or has finished is opened for those of them that are new to it.
    public func addTasks(_ upload: Upload, to group: String, reopening: Bool = false) async throws -> Addition {
        let id = try await groupID(group)
        while true {
            let addition = try await transaction(waking: [.work, .events]) { connection in
                try await Self.add(upload, to: id, reopening: reopening, firstChunk: policy.firstChunk, on: connection)
            }
            if let addition { return addition }
            try await finishCancel(of: id)
        }
    }

    /// Adds an upload's tasks; `nil` when a cancel of the group has to be finished first.
    static func add(
        _ upload: Upload, to group: GroupID, reopening: Bool, firstChunk: Int64, on connection: PostgresConnection
    ) async throws -> Addition? {
        let row: PostgresRow
        do {
            row = try await connection.query(
                """
                SELECT outcome, line, other_line, subject, url, other, added, existing
                FROM add_tasks(\(group), \(upload.id), \(upload.count), \(firstChunk), \(reopening))
                """, deadline: .now + .seconds(600))[0]
        } catch let error as PostgresError where error.constraint == "tasks_destination_unique" {
            // Somebody else's task took the destination between the check and the index.
            throw Refusal.destinationTaken(nil, line: nil, by: nil)
        }
        switch try row.decode("outcome", as: AdditionOutcome.self) {
        case .added: return Addition(added: try row.decode("added"), existing: try row.decode("existing"))
        case .cancelling: return nil
        case .duplicateKey:
            throw Refusal.duplicateKey(try row.decode("subject"), try Collision(row))
        case .duplicatePath:
            throw Refusal.duplicatePath(try row.decode("subject"), try Collision(row))
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

    /// What `add_tasks` says; anything but `added` means that nothing was.
    private enum AdditionOutcome: String, PostgresText {
        case added, removed, incomplete, tooLarge, duplicateKey, duplicatePath, destinationTaken, sealed, finished,
            cancelling
    }
}

extension Store {
    /// Two lines of a manifest that can't stand together.
    public struct Collision: Hashable, Sendable {
        /// The line that is refused, counted from 1.
        public let line: Int64
        /// The line before it.
        public let otherLine: Int64
        /// The first URL of the line.
        public let url: String
        /// The first URL of the other one.
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
