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
    /// What to do when the disk is full.
    let onFull: OnFull
    /// Failures up to this moment belong to an earlier run, and say nothing of the room there is now.
    let since: Timestamp?
    /// Where messages go.
    let console: Console

    /// How often the disk is checked.
    private static let period: Duration = .seconds(1)

    /// Thrown when an obstacle ends the command.
    struct Halt: Error {
        /// How the command fails.
        let failure: CommandFailure
        /// The group as last seen; `nil` if it was never seen.
        let group: GroupDocument?
    }

    /// What is in the way.
    private enum Obstacle {
        /// The directory takes no writes, for this reason.
        case refusal(String)
        /// The database lacks room.
        case noDatabaseRoom(EmbeddedPostgresError)
        /// There is no room for the rest of the group; with the status of the workers' sinks.
        case full(GroupDocument, [SinkStatus])

        var kind: Blockage.Kind {
            switch self {
            case .refusal: .refused
            case .noDatabaseRoom, .full: .full
            }
        }
    }

    /// The result of a check.
    private struct Look {
        var obstacle: Obstacle?
        /// The group as last seen.
        var group: GroupDocument?
        /// Whether bytes have become durable since the previous check.
        var hasCome = false
        /// Whether the coordinator answered the request for the workers and their sinks.
        var isAnswered = true
    }

    /// Free space that grows by more than this many bytes means that room was made; the database causes smaller changes.
    private static let room: Int64 = 4 << 20

    /// Watches until it is cancelled.
    ///
    /// - Throws: `Halt` when an obstacle lasts and `onFull` is not to wait; `CancellationError`.
    func run() async throws {
        var blockage = Blockage()
        var look = Look()
        // In bytes: the most free space seen since a lack of room was last reported, and the free space at that report.
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
        // The database is on the same disk, and a coordinator without it answers late: check the directory before asking.
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
            // Other reasons for a missing answer are reported by the code that waits for the group.
            look.obstacle = room.lack.map { .noDatabaseRoom($0) }
        }
        return look
    }

    private func isFull(_ document: GroupDocument, _ sinks: [SinkStatus]) async -> Bool {
        guard !document.state.isTerminal else { return false }
        if !sinks.isEmpty, sinks.allSatisfy({ $0.parked == .storageFull }) { return true }
        guard Self.lacksRoom(document) else { return false }
        let refused = (try? await client.tasksInTrouble(of: group, limit: Limits.pageSize)) ?? []
        // A file that is larger than the whole file system fails by itself within seconds.
        return Self.areNewer(refused.compactMap(\.failure?.at), than: since)
            && (onFull == .wait || !refused.contains { $0.failure?.isTooLarge == true })
    }

    /// The number of consecutive checks without progress after which an obstacle counts.
    private func looks(_ obstacle: Obstacle) -> Int {
        switch obstacle {
        // A mount may come back.
        case .refusal: return 10
        // Work that is still running may end first.
        case .noDatabaseRoom: return 2
        case .full(let document, _):
            // The rest would fit now: room may have been made, which the next try notices.
            return Self.wouldFit(document, free: Directories.freeBytes(below: directory)) ? 15 : 2
        }
    }

    /// Reports the obstacle: as a remark when `onFull` is to wait, otherwise by throwing `Halt`.
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
        // Each line is escaped by itself: the only line breaks are those between the lines.
        let message = lines.map { TextWidth.escaped($0) }.joined(separator: "\n")
        guard onFull == .wait else { throw Halt(failure: .other(message), group: document) }
        console.remark(message)
    }

    /// The message about a full disk: how much is missing, and which file was refused.
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

    /// The line about a refused file, below the message about the disk. The free space at the time of the refusal is not the free space
    /// now, so it is left out when the message names the latter.
    static func line(_ path: String, _ detail: String, below text: String) -> String {
        let isTold = text.firstRange(of: " are free") != nil
        let needs = isTold ? detail.replacing(/, \d[^,;]* are free/, with: "") : detail
        return "  \(path): \(needs)"
    }

    /// Why the directory takes no writes, other than for lack of room; `nil` while at least one sink is not parked for that.
    private func refusal(of sinks: [SinkStatus]) -> String? {
        guard sinks.allSatisfy({ $0.parked == .storage }) else { return nil }
        return Directories.refusal(of: directory) ?? sinks.first?.detail
    }

    /// Whether all unfinished tasks were refused for lack of room.
    static func lacksRoom(_ group: GroupDocument) -> Bool {
        let unfinished = group.tasks.queued + group.tasks.active + group.tasks.finalizing
        let refused = (group.trouble ?? []).filter(\.kind.isLackOfRoom).reduce(0) { $0 + $1.tasks }
        return unfinished > 0 && refused == unfinished
    }

    /// Whether the bytes still to come are known and fit into the free space.
    static func wouldFit(_ group: GroupDocument, free: Int64?) -> Bool {
        let left = group.bytes.total - group.bytes.done
        return left > 0 && group.bytes.unknownTasks == 0 && (free ?? 0) >= left
    }

    /// Whether all these failures happened after `past`, the last failure of the earlier runs.
    static func areNewer(_ failures: [Timestamp], than past: Timestamp?) -> Bool {
        guard let past else { return true }
        return failures.allSatisfy { $0 > past }
    }

    /// The failure of a command whose database lacks room.
    static func failure(_ lack: EmbeddedPostgresError) -> CommandFailure { .other("\(lack)\n  \(help)") }

    /// What to do about a lack of room.
    static let help = "make room and run the same command again; with --on-full wait it waits for room and goes on"

    /// What to do about a directory that takes no writes.
    static let repair = "when it can be written, run the same command again, and it goes on"

    /// `/srv is full: 60.0 MiB are still to come, 32.0 MiB are free; up to 28.0 MiB are missing`.
    ///
    /// - Parameters:
    ///   - free: the bytes that are free.
    ///   - owed: how many of them are reserved for the database, and are no room for files.
    ///   - isQuota: whether a quota is used up, however much is free.
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
        // The known rest would fit, but was refused all the same. A file that does not fit is refused before its size counts.
        if wouldFit(group, free: room) { return text("\(directory) takes no more") }
        let isFull = (room ?? 0) < max(left, Limits.chunk.lowerBound.bytes)
        // Preallocated parts already hold room for some of the bytes to come, so less may be missing.
        let missing = left - (room ?? left)
        let unknown = group.bytes.unknownTasks
        let sizes = unknown == 1 ? "a file needs whose size is" : "\(unknown) files need whose sizes are"
        let more = unknown == 0 ? "" : ", and what \(sizes) not known yet"
        return text("\(directory) \(isFull ? "is full" : "has no room for a file")")
            + (missing > 0 ? "; up to \(ByteCount(bytes: missing)) are missing\(more)" : "")
    }
}

extension FailureKind {
    /// Whether free space would resolve the failure.
    var isLackOfRoom: Bool { self == .storageFull || self == .noSpace }
}

extension TaskFailure {
    /// Whether the file is larger than the whole file system. The worker's text says so.
    fileprivate var isTooLarge: Bool { kind == .noSpace && detail.firstRange(of: "the whole file system has") != nil }
}
