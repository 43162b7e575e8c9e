import MusterAPI
import MusterCore
import MusterWorker
import SystemPackage

/// The work of `get` at its coordinator: has a group for this request done, and its files in place.
///
/// The group is named after the content of the request, so that the same command finds it again. Tasks whose files have vanished are
/// forgotten there and added again, whether or not the group has ended, and however it ended. If the options are not those of a group that
/// has succeeded, another group follows, `get-<identity>-2` and so on; where the origin is asked at each run (`--if-exists replace`),
/// another group follows every group.
struct GetSession {
    /// The coordinator.
    let client: MusterClient
    /// Repeats requests to the coordinator, whose database may be restarting.
    let patience: Patience
    /// The tasks of the request.
    var tasks: TaskList
    /// Facts about all tasks.
    let survey: TaskList.Survey
    /// How the files are to be fetched.
    let transfers: TransferSettings
    /// Where the files go.
    let directory: FilePath
    /// Whether there is room for the database.
    let room: DatabaseRoom
    /// What happens when the disk is full.
    let onFull: OnFull
    /// Settings and console of the command.
    let context: CommandContext
    /// Is told when a worker of this process has reported.
    let own: OwnWorkers
    /// Starts the workers of this process. Before other requests are paused, the workers would get leases of these, and lose them again.
    let beginWork: @Sendable () -> Void

    /// The prefix of the names of all groups of `get`.
    static let prefix = "get-"
    /// How many failures are explained.
    private static let explainedFailures = 5
    /// How many tries of each explained failure are shown.
    static let shownTries = 3

    /// Fetches the files and puts them in place.
    ///
    /// - Throws: `Problem` when the tasks are refused.
    func run() async throws -> Result {
        let groups = try await StatusCommand.groups(patient)
        let last = lastGeneration(among: groups)
        try await pauseOthers(among: groups, but: name(last))
        var session = self
        session.tasks = try await placed(in: groups)
        do {
            return try await session.bring(after: last)
        } catch let halt as DiskWatch.Halt {
            guard let group = halt.group else { throw halt.failure }
            return Result(
                group: group, failures: [], explanations: [], wasComplete: false, changed: [],
                directory: directory.string, halt: halt.failure)
        }
    }

    /// - Parameter last: the number of the last group of this request.
    private func bring(after last: Int) async throws -> Result {
        async let worker: Void = awaitWorker()
        beginWork()
        // Read before anything is submitted: a small file may be done before the submission is answered.
        let start = try await watcher("").lastPosition()
        var begun = Gain.Start(at: .now)
        var generation = last
        // An earlier run has reported the failures up to now.
        let since = generation == 0 ? nil : try await patient.groupExplanation(of: name(generation)).at
        var document: GroupDocument
        var earlier = Earlier()
        // Whether this run has submitted or reopened work. Small files may be done before the submission is answered.
        let isFresh: Bool
        if let known = try await self.begun(generation) {
            (document, earlier, begun) = try await goOn(known, generation)
            isFresh = !document.state.isTerminal || document.generation > known.generation
        } else {
            if asksAnew { try await reviveBegun(before: generation + 1) }
            generation += 1
            earlier = try await finishedEarlier()
            document = try await submit(generation, chosen: earlier.isEmpty ? nil : try lacking(earlier))
            isFresh = document.tasks.total > 0
        }
        var end = GroupWatcher.End(group: document, namedFailures: 0, gain: Gain(document, since: begun, now: .now))
        if isFresh {
            try await worker
            end = try await wait(document.name, after: start, since: since, begun: begun)
        }
        var findings = try await verify(end.group)
        // A file may be removed by another process while others are fetched.
        if isFresh, !findings.missing.isEmpty {
            document = try await askAgain(for: findings.missing, generation)
            let gain = end.gain
            end = try await wait(document.name, after: start, since: since)
            end.gain = gain + end.gain
            findings = try await verify(end.group)
        }
        if asksAnew, end.group.state.isTerminal { try await forgetEarlier(than: generation, end.group) }
        findings.changed += earlier.changed
        return try await result(
            end, generation, since: since, isFresh: isFresh, there: earlier.keys.count, changed: findings.changed)
    }

    /// Waits until a worker of this process has reported, for about 30 s. Before that, the notes of the group would say that it lacks a worker, and how
    /// to start one. After that, they may.
    func awaitWorker() async throws {
        defer { own.began() }
        for _ in 0..<1_200 {
            if try await !patient.workers().items.isEmpty { return }
            try await Task.sleep(for: .milliseconds(25))
        }
    }

    func name(_ generation: Int) -> String {
        Self.prefix + survey.identity.text + (generation == 1 ? "" : "-\(generation)")
    }

    /// The number of the last group of this request; 0 when there is none.
    private func lastGeneration(among groups: [GroupDocument]) -> Int {
        let first = name(1)
        return groups.map(\.name).map { name in
            name == first ? 1 : name.hasPrefix("\(first)-") ? Int(name.dropFirst(first.count + 1)) ?? 0 : 0
        }.max() ?? 0
    }

    /// Whether the origin is asked about existing files, so that files which have changed there are replaced.
    var asksAnew: Bool { transfers.policy?.ifExists == .replace }

    /// The group to go on with; `nil` if a new one is needed. A group that has succeeded with other options does not qualify: an origin that is
    /// asked in another way may give other content. Where the origin is asked at each run, only a cancelled group qualifies.
    private func begun(_ generation: Int) async throws -> GroupDocument? {
        guard generation > 0 else { return nil }
        let document = try await patient.group(name(generation))
        if asksAnew { return document.state == .cancelled ? document : nil }
        return document.state == .succeeded && document.metadata != settingsMark ? nil : document
    }

    /// Goes on with an existing group, whatever the state of its files.
    ///
    /// - Returns: the group, the files that earlier requests have finished, and the bytes that were there at the beginning.
    private func goOn(_ known: GroupDocument, _ generation: Int) async throws -> (GroupDocument, Earlier, Gain.Start) {
        let name = known.name
        var document = known
        var earlier = Earlier()
        try await askAsWanted(document)
        if try await forgetMisplaced(in: document) { document = try await patient.group(name) }
        let missing = document.state == .cancelled ? [] : try await verify(document).missing
        if !missing.isEmpty { document = try await forget(missing, of: name) }
        let begun = try await beginning(document)
        guard document.state != .cancelled else { return (document, earlier, begun) }
        // The group need not have ended: a stopped run may have left failed tasks.
        if document.state == .failed || document.tasks.failed > 0 {
            context.console.remark("trying again what failed")
            document = try await patient.apply(.retry, to: name)
        }
        let isOpen = document.state == .open
        let lack = Int64(survey.count) - document.tasks.total
        if !isOpen, lack == Int64(missing.count), lack > 0 {
            document = try await submit(generation, chosen: missing, reopens: true)
        } else if isOpen || lack > 0 {
            // The other missing tasks: an earlier request has finished them, or a run ended before it added them, or a later request took their paths.
            let own = Set(
                try await Page.all { try await patient.tasks(of: name, after: $0, limit: Limits.pageSize) }.map(\.key))
            earlier = try await finishedEarlier(but: own)
            let wanted = try lacking(earlier)
            if isOpen || !wanted.isSubset(of: own) {
                document = try await submit(generation, chosen: earlier.isEmpty ? nil : wanted, reopens: !isOpen)
            }
        }
        if document.tasks.paused > 0, !document.state.isTerminal {
            document = try await patient.apply(.resume, to: name)
        }
        return (document, earlier, begun)
    }

    /// The bytes that a continued group has at the beginning.
    private func beginning(_ group: GroupDocument) async throws -> Gain.Start {
        var start = Gain.Start(group, at: .now)
        guard group.state != .succeeded, group.bytes.done > 0 else { return start }
        for state in TaskState.allCases where state != .succeeded {
            // One page per state is enough: in a longer list, bytes may be counted twice where a file has changed.
            start.note(try await patient.tasks(of: group.name, state: state, limit: Limits.pageSize).items)
        }
        return start
    }

    /// Asks again for files that are gone.
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
        try await inPages(missing.sorted()) { _ = try await patient.removeTasks($0, of: group) }
        return try await patient.group(group)
    }

    private func submit(_ generation: Int, chosen: Set<String>?, reopens: Bool = false) async throws -> GroupDocument {
        var submission = Submission(
            client: patient,
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
            guard let held = try await freePaths(for: name(generation)) else { throw problem }
            // Tasks that only this request wants don't wait for the tasks that both want.
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

    /// Waits for a group, and prints its events after a position of the log; returns how the group ended.
    ///
    /// - Parameters:
    ///   - since: failures up to this moment are not printed.
    ///   - begun: the bytes at the beginning of the run, if it began before the wait.
    ///   - part: the tasks to wait for, if all others are paused and stay so.
    func wait(
        _ name: String, after start: Int64, since: Timestamp?, begun: Gain.Start? = nil, part: GroupPart? = nil
    ) async throws -> GroupWatcher.End {
        var watcher = watcher(name)
        watcher.since = since
        watcher.start = begun
        watcher.endsAtPause = part != nil
        watcher.part = part
        return try await untilFull(name, since) { [watcher] in
            try await watcher.untilTerminal(news: .all(after: start))
        }
    }

    /// The client for everything but watching; it repeats requests.
    var patient: MusterClient { patience.asking(by: client) }

    func watcher(_ name: String) -> GroupWatcher {
        var watcher = context.watcher(client, group: name, patience: patience)
        watcher.ownsWorkers = true
        // The rate was read at the start of the command already, so that it is valid.
        watcher.maxRate = try? context.settings.rate(.maxRate)
        return watcher
    }

    /// Waits for `body`, but no longer than a full disk allows (`DiskWatch`).
    private func untilFull<Value: Sendable>(
        _ name: String, _ since: Timestamp?, _ body: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        let watch = DiskWatch(
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
        _ end: GroupWatcher.End, _ generation: Int, since: Timestamp?, isFresh: Bool, there: Int, changed: [String]
    ) async throws -> Result {
        let group = end.group
        let failures = group.tasks.failed == 0 ? [] : try await GroupResult.failures(of: group.name, patient)
        var explanations: [ExplanationDocument] = []
        for task in failures.prefix(Self.explainedFailures) {
            var explanation = try await patient.explanation(of: task.key, in: group.name)
            // Earlier failures were reported by the run in which they happened.
            if let since { explanation.attempts.removeAll { $0.at <= since } }
            // Once `get` has ended there is no coordinator to be asked for a retry.
            explanation.next =
                task.failure.flatMap { FailureAdvice.advice($0)?.text }
                ?? "run the same command again, which goes on where it stopped"
            explanations.append(explanation)
        }
        let unchecked = failures.isEmpty ? [] : try await unchecked(in: group, before: generation)
        return Result(
            group: group,
            namedFailures: end.namedFailures,
            gain: end.gain,
            failures: failures,
            explanations: explanations,
            there: there,
            unchanged: asksAnew ? try await finished(in: group).count { $0.reusedFrom == $0.path } : 0,
            wasComplete: !isFresh && group.state == .succeeded && changed.isEmpty,
            changed: changed,
            unchecked: unchecked,
            doubtful: try await .of(group, patient),
            directory: directory.string
        )
    }
}
