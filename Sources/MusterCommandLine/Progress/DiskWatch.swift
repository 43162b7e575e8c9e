import MusterAPI
import MusterCore
import MusterEmbeddedPostgres
import MusterWorker
import SystemPackage

/// Notices that the disk below a group's files is full, or takes no writes at all, so that the group can't go on.
struct DiskWatch {
    /// The coordinator.
    let client: MusterClient
    /// The group's name.
    let group: String
    /// Where the files go.
    let directory: FilePath
    /// Whether there is room for the database on its own disk.
    let room: DatabaseRoom
    /// What happens then.
    let onFull: OnFull
    /// What a run before this one met, up to this moment, says nothing of the room there is now.
    let since: Timestamp?
    /// Where it is said.
    let console: Console

    /// How often it is looked.
    private static let period: Duration = .seconds(1)

    /// That the obstacle is the end of a command.
    struct Halt: Error {
        /// What is said of it.
        let failure: CommandFailure
        /// The group, as it was seen last; `nil` where it never was.
        let group: GroupDocument?
    }

    /// What is in the way.
    private enum Obstacle {
        /// The directory takes no writes, for this reason.
        case refusal(String)
        /// The database lacks room.
        case noDatabaseRoom(EmbeddedPostgresError)
        /// There is no room for what is left of the group; what the workers say of their sinks.
        case full(GroupDocument, [SinkStatus])

        var kind: Blockage.Kind {
            switch self {
            case .refusal: .refused
            case .noDatabaseRoom, .full: .full
            }
        }
    }

    /// What a look has found.
    private struct Look {
        var obstacle: Obstacle?
        /// The group, as it was seen last.
        var group: GroupDocument?
        /// Whether bytes have become durable since the look before.
        var hasCome = false
        /// Whether the coordinator knew of the sinks.
        var isAnswered = true
    }

    /// Somebody has made room where so many bytes more are free: a few come and go with the database.
    private static let room: Int64 = 4 << 20

    /// Watches until it is cancelled.
    ///
    /// - Throws: `Halt` when an obstacle lasts and that is to be the end; `CancellationError`.
    func run() async throws {
        var blockage = Blockage()
        var look = Look()
        // The most that has been free, and what was when a lack of room was told.
        var (most, told) = (Int64(0), Int64.max)
        while true {
            try await Task.sleep(for: Self.period)
            look = await self.look(after: look)
            let looks = look.obstacle.map(looks) ?? 0
            let free = Directories.freeBytes(below: directory) ?? 0
            most = max(most, free)
            let hasRoom = most - Self.room > told
            switch blockage.look(look.obstacle?.kind, looks: looks, hasCome: look.hasCome, hasRoom: hasRoom) {
            case nil: break
            case .isOver(.full): console.remark("there is room again; going on")
            case .isOver(.refused): console.remark(TextWidth.escaped("\(directory) can be written again; going on"))
            case .lasts:
                (most, told) = (free, free)
                if let obstacle = look.obstacle { try await tell(obstacle, look.group) }
            }
        }
    }

    private func look(after before: Look) async -> Look {
        var look = Look(group: before.group)
        // The database is there as well: a coordinator without it takes its time to say so.
        if !before.isAnswered, let reason = Directories.refusal(of: directory) {
            look.obstacle = .refusal(reason)
            look.isAnswered = false
            return look
        }
        let workers = try? await client.workers()
        let sinks = workers?.items.flatMap(\.sinks).filter { $0.name == defaultSinkName }
        look.isAnswered = sinks != nil
        if let reason = refusal(of: sinks ?? []) {
            look.obstacle = .refusal(reason)
        } else if let sinks, let document = try? await client.group(group) {
            look.hasCome = document.bytes.done > before.group?.bytes.done ?? -1
            look.group = document
            if await isFull(document, sinks) { look.obstacle = .full(document, sinks) }
        } else {
            // A coordinator that does not answer for another reason is for those to report who wait for the group.
            look.obstacle = room.lack.map { .noDatabaseRoom($0) }
        }
        return look
    }

    private func isFull(_ document: GroupDocument, _ sinks: [SinkStatus]) async -> Bool {
        guard !document.state.isTerminal else { return false }
        if !sinks.isEmpty, sinks.allSatisfy({ $0.parked == .storageFull }) { return true }
        guard Self.lacksRoom(document) else { return false }
        let refused = (try? await client.tasksInTrouble(of: group, limit: Limits.pageSize)) ?? []
        // What no room would be enough for fails by itself, within seconds.
        return Self.areNewer(refused.compactMap(\.failure?.at), than: since)
            && (onFull == .wait || !refused.contains { $0.failure?.isTooLarge == true })
    }

    /// After how many looks without any progress an obstacle counts.
    private func looks(_ obstacle: Obstacle) -> Int {
        switch obstacle {
        // A mount may come back.
        case .refusal: return 10
        // What still runs may end first.
        case .noDatabaseRoom: return 2
        case .full(let document, _):
            // Where all of it would fit by now somebody may have made room, which is noticed by the next try.
            return Self.wouldFit(document, free: Directories.freeBytes(below: directory)) ? 15 : 2
        }
    }

    /// Says what is in the way, or ends with it.
    private func tell(_ obstacle: Obstacle, _ document: GroupDocument?) async throws {
        var lines: [String]
        switch obstacle {
        case .refusal(let reason): lines = ["\(directory) can't be written: \(reason)"]
        case .noDatabaseRoom(let lack):
            lines = ["\(lack)"]
            let left = document.map { $0.bytes.total - $0.bytes.done } ?? 0
            if left > 0 { lines.append("  at least \(ByteCount(bytes: left)) of files are still to come besides") }
        case .full(let document, let sinks): lines = await text(document, sinks)
        }
        let (wait, help) =
            obstacle.kind == .refused ? ("waiting until it can", Self.repair) : ("waiting for room", Self.help)
        if onFull == .wait { lines[0] += "; \(wait)" } else { lines.append("  \(help)") }
        // Line breaks stand between these lines, and in none of them.
        let message = lines.map { TextWidth.escaped($0) }.joined(separator: "\n")
        guard onFull == .wait else { throw Halt(failure: .other(message), group: document) }
        console.remark(message)
    }

    /// What is said of a full disk: how much is missing, and what was refused.
    private func text(_ document: GroupDocument, _ sinks: [SinkStatus]) async -> [String] {
        var refused: (path: String, detail: String)?
        var details = sinks.compactMap(\.detail)
        // A file that has no room is refused before its size counts for the group.
        if let task = try? await client.tasksInTrouble(of: group, limit: 1).first, let failure = task.failure,
            failure.kind.isLackOfRoom
        {
            refused = (task.path, failure.detail)
            details.append(failure.detail)
        }
        let text =
            Directories.lacksInodes(below: directory)
            ? "\(directory) is full: its file system has no inode left for another file"
            : Self.text(
                document, free: Directories.freeBytes(below: directory),
                owed: max(room.owedBytes, SinkConfiguration.Identity.holdsDatabase.keptBytes),
                isQuota: details.contains(where: FailureKind.isOfQuota), directory: directory.string)
        return [text] + (refused.map { [Self.line($0.path, $0.detail, below: text)] } ?? [])
    }

    /// The line about a file that was refused, below what is said of the disk. What was free when it was refused is another number than what is free for files
    /// now, and is told only where that is not.
    static func line(_ path: String, _ detail: String, below text: String) -> String {
        let isTold = text.firstRange(of: " are free") != nil
        let needs = isTold ? detail.replacing(/, \d[^,;]* are free/, with: "") : detail
        return "  \(path): \(needs)"
    }

    /// Why the directory takes no writes, for another reason than room; `nil` as long as a worker or the coordinator shows that it does.
    private func refusal(of sinks: [SinkStatus]) -> String? {
        guard sinks.allSatisfy({ $0.parked == .storage }) else { return nil }
        return Directories.refusal(of: directory) ?? sinks.first?.detail
    }

    /// Whether no task is left but such as were refused for lack of room.
    static func lacksRoom(_ group: GroupDocument) -> Bool {
        let unfinished = group.tasks.queued + group.tasks.active + group.tasks.finalizing
        let refused = (group.trouble ?? []).filter(\.kind.isLackOfRoom).reduce(0) { $0 + $1.tasks }
        return unfinished > 0 && refused == unfinished
    }

    /// Whether all that is still to come fits into the room that is free.
    static func wouldFit(_ group: GroupDocument, free: Int64?) -> Bool {
        let left = group.bytes.total - group.bytes.done
        return left > 0 && group.bytes.unknownTasks == 0 && (free ?? 0) >= left
    }

    /// Whether all of these failures happened after the last one of the runs before.
    static func areNewer(_ failures: [Timestamp], than past: Timestamp?) -> Bool {
        guard let past else { return true }
        return failures.allSatisfy { $0 > past }
    }

    /// The end of a command whose database lacks room.
    static func failure(_ lack: EmbeddedPostgresError) -> CommandFailure { .other("\(lack)\n  \(help)") }

    /// What to do about it.
    static let help = "make room and run the same command again; with --on-full wait it waits for room and goes on"

    /// What to do about a directory that takes no writes.
    static let repair = "when it can be written, run the same command again, and it goes on"

    /// `/srv is full: 60.0 MiB are still to come, 32.0 MiB are free; up to 28.0 MiB are missing`.
    ///
    /// - Parameters:
    ///   - free: the bytes that are free.
    ///   - owed: how many of them the database is to have: no room for files.
    ///   - isQuota: whether what is used up is a quota, whatever is free.
    static func text(
        _ group: GroupDocument, free: Int64?, owed: Int64 = 0, isQuota: Bool = false, directory: String
    ) -> String {
        let left = group.bytes.total - group.bytes.done
        var parts: [String] = []
        if left > 0 {
            let atLeast = group.bytes.unknownTasks > 0 ? "at least " : ""
            parts.append("\(atLeast)\(ByteCount(bytes: left)) are still to come")
        }
        func text(_ what: String) -> String { what + (parts.isEmpty ? "" : ": " + parts.joined(separator: ", ")) }
        if isQuota { return text("the quota is used up in \(directory)") }
        let room = free.map { max(0, $0 - owed) }
        if let free, let room {
            parts.append("\(ByteCount(bytes: room)) are free")
            if room < free { parts.append("\(ByteCount(bytes: free - room)) are kept for its database") }
        }
        // What would fit was refused all the same; and a file is refused before its size counts, if there is no room for all of it.
        if wouldFit(group, free: room) { return text("\(directory) takes no more") }
        let isFull = (room ?? 0) < max(left, Limits.chunk.lowerBound.bytes)
        // Parts that were given their whole room beforehand hold some of what is to come.
        let missing = left - (room ?? left)
        let unknown = group.bytes.unknownTasks
        let sizes = unknown == 1 ? "a file needs whose size is" : "\(unknown) files need whose sizes are"
        let more = unknown == 0 ? "" : ", and what \(sizes) not known yet"
        return text("\(directory) \(isFull ? "is full" : "has no room for a file")")
            + (missing > 0 ? "; up to \(ByteCount(bytes: missing)) are missing\(more)" : "")
    }
}

extension FailureKind {
    /// Whether room would heal it.
    var isLackOfRoom: Bool { self == .storageFull || self == .noSpace }
}

extension FailureDocument {
    /// Whether the file is larger than the whole file system. The words are the worker's.
    fileprivate var isTooLarge: Bool { kind == .noSpace && detail.firstRange(of: "the whole file system has") != nil }
}
