import MusterAPI
import MusterCore
import MusterEmbeddedPostgres
import SystemPackage

/// Notices that the disk below a group's files is full, or takes no writes at all, so that the group can't go on.
struct FullDiskWatch {
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

    /// How often the workers are looked at.
    private static let period: Duration = .seconds(1)
    /// After how many looks at a full disk without any progress it is taken for full: what still runs may end first.
    private static let looks = 2
    /// The same where all of it would fit by now: somebody may have made room, which is noticed by the next try.
    private static let looksWithRoom = 15

    /// In how many looks, one after the other, the directory took no writes.
    struct Refusals {
        /// After how many that is the end: a mount may come back.
        static let most = 10

        /// What a look has shown that is new.
        enum News: Hashable {
            /// The directory takes no writes, for this reason.
            case lasts(String)
            /// It takes them again.
            case isOver
        }

        private var looks = 0

        /// Takes in why the directory takes no writes; `nil`: it does.
        mutating func look(_ refusal: String?) -> News? {
            let before = looks
            looks = refusal == nil ? 0 : before + 1
            guard let refusal else { return before >= Self.most ? .isOver : nil }
            return looks == Self.most ? .lasts(refusal) : nil
        }
    }

    /// That a full disk is the end of a command.
    struct Halt: Error {
        /// What is said of it.
        let failure: CommandFailure
        /// The group, as it was seen last; `nil` where it never was.
        let group: GroupDocument?
    }

    /// Watches until it is cancelled.
    ///
    /// - Throws: `Halt` when the disk is full and that is to be the end; `CancellationError`.
    func run() async throws {
        var looks = 0
        var isTold = false
        var done: Int64 = -1
        var last: GroupDocument?
        var refusals = Refusals()
        var isAnswered = true
        while true {
            try await Task.sleep(for: Self.period)
            // The database is there as well: a coordinator without it takes its time to say so.
            let local = isAnswered ? nil : Directories.refusal(of: directory)
            let sinks =
                local != nil
                ? nil : try? await client.workers().items.flatMap(\.sinks).filter { $0.name == defaultSinkName }
            isAnswered = sinks != nil
            let refusal = local ?? refusal(of: sinks ?? [])
            switch refusals.look(refusal) {
            case .lasts(let reason):
                let text = TextWidth.escaped("\(directory) can't be written: \(reason)")
                guard onFull == .wait else { throw Halt(failure: .other("\(text)\n  \(Self.repair)"), group: last) }
                console.remark("\(text); waiting until it can")
            case .isOver: console.remark(TextWidth.escaped("\(directory) can be written again; going on"))
            case nil: break
            }
            guard let sinks, let document = try? await client.group(group) else {
                // A coordinator that does not answer for another reason is for those to report who wait for the group.
                guard let lack = room.lack else { continue }
                looks += 1
                guard looks >= Self.looks, !isTold else { continue }
                guard onFull == .wait else { throw Halt(failure: Self.failure(lack), group: last) }
                console.remark(TextWidth.escaped("\(lack); waiting for room"))
                isTold = true
                continue
            }
            last = document
            var isFull = !sinks.isEmpty && sinks.allSatisfy { $0.parked == .storageFull }
            if !isFull, Self.lacksRoom(document) {
                let refused = (try? await client.tasksInTrouble(of: group, limit: Limits.pageSize)) ?? []
                // What no room would be enough for fails by itself, within seconds.
                isFull =
                    Self.areNewer(refused.compactMap(\.failure?.at), than: since)
                    && (onFull == .wait || !refused.contains { $0.failure?.isTooLarge == true })
            }
            let hasCome = document.bytes.done > done
            done = document.bytes.done
            guard isFull, !document.state.isTerminal else {
                // A parked sink is tried now and then; only bytes show that there is room indeed.
                if isTold, hasCome {
                    console.remark("there is room again; going on")
                    isTold = false
                }
                looks = 0
                continue
            }
            looks = hasCome ? 1 : looks + 1
            let free = Directories.freeBytes(below: directory)
            guard looks >= (Self.wouldFit(document, free: free) ? Self.looksWithRoom : Self.looks), !isTold else {
                continue
            }
            var lines: [String] = []
            var details = sinks.compactMap(\.detail)
            // A file that has no room is refused before its size counts for the group.
            if let task = try? await client.tasksInTrouble(of: group, limit: 1).first, let failure = task.failure,
                Self.noRoom.contains(failure.kind.rawValue)
            {
                lines.append("  \(task.path): \(failure.detail)")
                details.append(failure.detail)
            }
            let text =
                Directories.lacksInodes(below: directory)
                ? "\(directory) is full: its file system has no inode left for another file"
                : Self.text(
                    document, free: free, owed: room.owedBytes,
                    isQuota: details.contains(where: FailureKind.isOfQuota), directory: directory.string)
            // Line breaks stand between these lines, and in none of them.
            func message(_ lines: [String]) -> String { lines.map { TextWidth.escaped($0) }.joined(separator: "\n") }
            switch onFull {
            case .fail:
                throw Halt(failure: .other(message([text] + lines + ["  \(Self.help)"])), group: document)
            case .wait: console.remark(message(["\(text); waiting for room"] + lines))
            }
            isTold = true
        }
    }

    /// Why the directory takes no writes, for another reason than room; `nil` as long as a worker or the coordinator shows that it does.
    private func refusal(of sinks: [SinkStatus]) -> String? {
        guard sinks.allSatisfy({ $0.parked == .storage }) else { return nil }
        return Directories.refusal(of: directory) ?? sinks.first?.detail
    }

    /// Whether no task is left but such as were refused for lack of room.
    static func lacksRoom(_ group: GroupDocument) -> Bool {
        let unfinished = group.tasks.queued + group.tasks.active + group.tasks.finalizing
        let refused = (group.trouble ?? []).filter { noRoom.contains($0.kind.rawValue) }.reduce(0) { $0 + $1.tasks }
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

    /// The kinds of failures that room would heal.
    private static let noRoom: Set<String> = ["storageFull", "noSpace"]

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
        return text("\(directory) \(isFull ? "is full" : "has no room for a file")")
            + (missing > 0 ? "; up to \(ByteCount(bytes: missing)) are missing" : "")
    }
}

extension FailureDocument {
    /// Whether the file is larger than the whole file system. The words are the worker's.
    fileprivate var isTooLarge: Bool { kind == .noSpace && detail.firstRange(of: "the whole file system has") != nil }
}
