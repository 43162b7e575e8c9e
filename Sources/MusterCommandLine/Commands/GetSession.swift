import MusterAPI
import MusterCore
import MusterWorker
import SystemPackage

/// What `get` wants of its coordinator: a group for this very request, done, and its files in place.
///
/// The group is named after the content of the request, so that the same command finds it again. Files of it that have vanished are
/// forgotten there and asked for again, whether or not it has ended and how. Asked with other options, a group that has succeeded is followed
/// by another one, `get-<identity>-2` and so on.
struct GetSession {
    /// The coordinator.
    let client: MusterClient
    /// What is wanted.
    let tasks: TaskList
    /// What is known of that.
    let survey: TaskList.Survey
    /// What is wanted of the transfers.
    let transfers: TransferSettings
    /// Where the files go.
    let directory: FilePath
    /// Whether there is room for the database.
    let room: DatabaseRoom
    /// What happens when the disk is full.
    let onFull: OnFull
    /// What the command works with.
    let context: CommandContext
    /// Told once a worker of this process is heard of.
    let own: OwnWorkers
    /// Lets the workers of this process begin: they would be leased what an earlier request left, and have it taken away.
    let beginWork: @Sendable () -> Void

    /// The beginning of the names of all groups of `get`.
    static let prefix = "get-"
    /// How many failures are named one by one.
    static let shownFailures = 20
    /// How many of them are explained.
    private static let explainedFailures = 5
    /// How many tries of each are shown.
    static let shownTries = 3

    /// Brings the files in place.
    ///
    /// - Throws: `Problem` when the tasks are refused.
    func run() async throws -> Result {
        async let worker: Void = awaitWorker()
        try await pauseOthers()
        beginWork()
        // Known before anything is asked for: a small file may be there by the time that the answer is.
        let start = try await watcher("").lastPosition()
        var generation = try await lastGeneration()
        // What failed up to now has been told by an earlier run.
        let since = generation == 0 ? nil : try await client.groupExplanation(of: name(generation)).at
        var document: GroupDocument
        // Small files may be there by the time that they were asked for.
        let isFresh: Bool
        if let known = try await begun(generation) {
            document = try await goOn(known, generation)
            isFresh = !document.state.isTerminal || document.generation > known.generation
        } else {
            generation += 1
            document = try await submit(generation, chosen: nil)
            isFresh = document.tasks.total > 0
        }
        var named: Int64 = 0
        if isFresh {
            try await worker
            (document, named) = try await wait(document.name, after: start, since: since)
        }
        var findings = try await verify(document)
        // Somebody may take files away while others come.
        if isFresh, !findings.missing.isEmpty {
            document = try await askAgain(for: findings.missing, generation)
            (document, named) = try await wait(document.name, after: start, since: since)
            findings = try await verify(document)
        }
        return try await result(document, generation, named: named, isFresh: isFresh, changed: findings.changed)
    }

    /// Waits for the worker of this process to report: until then the group would be said to lack one, and told to start one. If it takes very
    /// long, that is for the group to say.
    func awaitWorker() async throws {
        defer { own.began() }
        for _ in 0..<1_200 {
            if try await !client.workers().items.isEmpty { return }
            try await Task.sleep(for: .milliseconds(25))
        }
    }

    private func name(_ generation: Int) -> String {
        Self.prefix + survey.identity.text + (generation == 1 ? "" : "-\(generation)")
    }

    /// The number of the last group of this request; 0 when there is none.
    private func lastGeneration() async throws -> Int {
        var generation = 0
        while true {
            do {
                _ = try await client.group(name(generation + 1))
                generation += 1
            } catch let problem as Problem where problem.code == .groupNotFound {
                return generation
            }
        }
    }

    /// The group to go on with. A group that has succeeded with other options is not: asked in another way, an origin may have other
    /// contents to give.
    private func begun(_ generation: Int) async throws -> GroupDocument? {
        guard generation > 0 else { return nil }
        let document = try await client.group(name(generation))
        return document.state == .succeeded && document.metadata != settingsMark ? nil : document
    }

    /// Goes on with a group that is there already, whatever has become of its files.
    private func goOn(_ known: GroupDocument, _ generation: Int) async throws -> GroupDocument {
        let name = known.name
        var document = known
        try await askAsWanted(document)
        guard document.state != .cancelled else { return document }
        let missing = try await verify(document).missing
        if !missing.isEmpty { document = try await forget(missing, of: name) }
        if document.state == .failed {
            context.console.remark("trying again what failed")
            document = try await client.apply(.retry, to: name)
        }
        let isOpen = document.state == .open
        let lacking = Int64(survey.count) - document.tasks.total
        if isOpen || lacking > 0 {
            // What else is lacking a run did not add before it ended, or a later request has taken over its path.
            let isKnown = !isOpen && lacking == Int64(missing.count)
            document = try await submit(generation, chosen: isKnown ? missing : nil, reopens: !isOpen)
        }
        if document.tasks.paused > 0, !document.state.isTerminal {
            document = try await client.apply(.resume, to: name)
        }
        return document
    }

    /// Has files come again that are gone.
    private func askAgain(for missing: Set<String>, _ generation: Int) async throws -> GroupDocument {
        _ = try await forget(missing, of: name(generation))
        return try await submit(generation, chosen: missing, reopens: true)
    }

    /// Forgets tasks whose files are gone, so that they can be asked for again.
    private func forget(_ missing: Set<String>, of group: String) async throws -> GroupDocument {
        context.console.remark(
            missing.count == 1
                ? "a file is not there any more; fetching it again"
                : "\(missing.count) files are not there any more; fetching them again")
        try await inPages(missing.sorted()) { _ = try await client.removeTasks($0, of: group) }
        return try await client.group(group)
    }

    private func submit(_ generation: Int, chosen: Set<String>?, reopens: Bool = false) async throws -> GroupDocument {
        var submission = Submission(
            client: client,
            group: name(generation),
            sink: defaultSinkName,
            wishes: GroupPatch(),
            transfers: transfers,
            seals: true,
            reopens: reopens,
            tasks: tasks,
            chosen: chosen,
            metadata: settingsMark
        )
        do {
            return try await submission.submit(survey).group
        } catch let problem as Problem where problem.code == .destinationTaken {
            guard let held = try await freePaths() else { throw problem }
            // What this request alone wants does not wait for what both want.
            let own = try ownKeys(among: chosen, without: held)
            if !held.isEmpty, !own.isEmpty {
                (submission.chosen, submission.seals) = (own, false)
                _ = try await submission.submit(survey)
                (submission.chosen, submission.seals) = (chosen, true)
            }
            for part in held { try await goOn(part, beside: submission.group) }
            return try await submission.submit(survey).group
        }
    }

    /// Waits for a group, and tells what happens in it behind a position of the log; returns it with how many of its failures were named.
    ///
    /// - Parameters:
    ///   - since: what failed up to then is not told.
    ///   - part: the tasks that are waited for, if all others are paused and stay so.
    func wait(
        _ name: String, after start: Int64, since: Timestamp?, part: GroupPart? = nil
    ) async throws -> (GroupDocument, Int64) {
        var watcher = watcher(name)
        watcher.since = since
        watcher.endsAtPause = part != nil
        watcher.part = part
        let end = try await untilFull(name, since) { [watcher] in
            try await watcher.untilTerminal(news: .all(after: start))
        }
        return (end.group, end.namedFailures)
    }

    func watcher(_ name: String) -> GroupWatcher {
        var watcher = context.watcher(client, group: name)
        watcher.tellsStandstills = true
        // It was read without complaint before anything began.
        watcher.maxRate = try? context.settings.rate(.maxRate)
        return watcher
    }

    /// Waits for something that a full disk may keep from coming.
    private func untilFull<Value: Sendable>(
        _ name: String, _ since: Timestamp?, _ body: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        let watch = FullDiskWatch(
            client: client, group: name, directory: directory, room: room, onFull: onFull, since: since,
            console: context.console)
        return try await withThrowingTaskGroup(of: Value?.self) { tasks in
            tasks.addTask { try await body() }
            tasks.addTask {
                try await watch.run()
                return nil
            }
            defer { tasks.cancelAll() }
            while let value = try await tasks.next() {
                if let value { return value }
            }
            throw CancellationError()
        }
    }

    private func result(
        _ group: GroupDocument, _ generation: Int, named: Int64, isFresh: Bool, changed: [String]
    ) async throws -> Result {
        let failures =
            group.tasks.failed == 0
            ? [] : try await client.tasks(of: group.name, state: .failed, limit: Self.shownFailures).items
        var explanations: [ExplanationDocument] = []
        for task in failures.prefix(Self.explainedFailures) {
            var explanation = try await client.explanation(of: task.key, in: group.name)
            // Once `get` has ended there is no coordinator to be asked for a retry.
            explanation.next = task.failure.flatMap { FailureAdvice.text($0) } ?? "run the same command again to retry"
            explanations.append(explanation)
        }
        let unchecked = failures.isEmpty ? [] : try await unchecked(in: group, before: generation)
        return Result(
            group: group,
            namedFailures: named,
            failures: failures,
            explanations: explanations,
            wasComplete: !isFresh && group.state == .succeeded && changed.isEmpty,
            changed: changed,
            unchecked: unchecked,
            directory: directory.string
        )
    }

    /// The paths of failed tasks whose files stand there as an earlier group of this request left them.
    private func unchecked(in group: GroupDocument, before generation: Int) async throws -> [String] {
        guard generation > 1 else { return [] }
        var failed = Set(
            try await Page.all {
                try await client.tasks(of: group.name, state: .failed, after: $0, limit: Limits.pageSize)
            }.map(\.path))
        var unchecked: [String] = []
        for earlier in stride(from: generation - 1, through: 1, by: -1) where !failed.isEmpty {
            for task in try await Page.all({
                try await client.tasks(of: name(earlier), state: .succeeded, after: $0, limit: Limits.pageSize)
            }) where failed.remove(task.path) != nil {
                guard let file = try Directories.facts(ofFile: directory.appending(task.path)) else { continue }
                if try await !isChanged(task, file) { unchecked.append(task.path) }
            }
        }
        return unchecked.sorted()
    }

    /// What became of the finished files of a group.
    private struct Findings {
        /// Keys of tasks whose files are gone.
        var missing: Set<String> = []
        /// Paths of files that have another content by now. Muster does not overwrite them.
        var changed: [String] = []
    }

    /// Whether somebody changed the file of a finished task since. One that was touched later is read, whatever time it has: a copy may have the time of
    /// what it was copied from, and the content that the task had.
    private func isChanged(_ task: TaskDocument, _ file: Directories.FileFacts) async throws -> Bool {
        if let size = task.bytes.total, size != file.size { return true }
        guard let checksum = task.crc32c else { return task.wasFinished(before: file) }
        guard let finishedAt = task.finishedAt, file.touchedAt > finishedAt.microseconds else { return false }
        return try await FileChecksum.crc32c(of: directory.appending(task.path).string) != checksum
    }

    /// Looks for the files that a group has finished.
    private func verify(_ group: GroupDocument) async throws -> Findings {
        var findings = Findings()
        guard group.tasks.succeeded > 0 else { return findings }
        var after: String?
        repeat {
            let page = try await client.tasks(of: group.name, state: .succeeded, after: after, limit: Limits.pageSize)
            for task in page.items {
                guard let file = try Directories.facts(ofFile: directory.appending(task.path)) else {
                    findings.missing.insert(task.key)
                    continue
                }
                if try await isChanged(task, file) { findings.changed.append(task.path) }
            }
            after = page.next
        } while after != nil
        return findings
    }
}

extension TaskDocument {
    /// Whether a file was written to after the task was finished with it. The clocks of the database and of a file server may be a second apart,
    /// and a file that has the origin's time says nothing.
    fileprivate func wasFinished(before file: Directories.FileFacts) -> Bool {
        guard let finishedAt, file.writtenAt > finishedAt.microseconds + 1_000_000 else { return false }
        return lastModified.flatMap { HTTPDate($0) }?.secondsSince1970 != file.writtenAt / 1_000_000
    }
}
