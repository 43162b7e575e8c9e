import FoundationEssentials
import MusterAPI
import MusterCore
import MusterStore
import MusterTestSupport
import SystemPackage
import Testing

/// What must be true when the storm is over and every group has ended.
struct StormOracle: Sendable {
    /// A task as the database has it in the end.
    struct Outcome: Sendable {
        let state: TaskState
        let version: Int
    }

    let scene: StormScene

    private var fleet: Fleet { scene.fleet }
    private var ledger: StormLedger { scene.ledger }
    private var report: StormReport { scene.report }

    /// Folders of the sink whose files have been checked where they were made.
    private static let others: Set<String> = [".muster", StormCanary.group, StormStrangers.folder]
    /// The invariants that the query checks (`docs/invariants.md`).
    private static let queried = ["I2", "I3", "I4", "I5", "I6", "I7", "I9", "I13", "I14", "I17"]

    /// Checks everything.
    func check() async throws {
        let broken = try await broken()
        #expect(broken.isEmpty)
        let outcomes = try await outcomes()
        let events = try await fleet.log()
        try checkFiles(outcomes, events)
        checkEndings(events)
        try checkWaste(outcomes)
        let states = try await scene.database.execute(
            "SELECT state, count(*) FROM groups GROUP BY state ORDER BY state")
        let groups = states.split(separator: "\n").map { $0.replacing("|", with: " ") }.joined(separator: ", ")
        report.tell("groups in the end", groups)
        #expect(ledger.surprises.isEmpty)
    }

    /// The broken invariants of the database (`docs/invariants.md`), in words.
    func broken() async throws -> [String] {
        let text = try await scene.database.execute(InvariantQuery.text)
        for invariant in Self.queried { report.checked(invariant) }
        return text.split(separator: "\n").map(String.init)
    }

    /// Origins with more lanes than any origin may have, and groups that were granted a lease in a lane beyond their cap (I5). After a cap
    /// was lowered, the oldest lanes go on.
    func exceededCaps() async throws -> [String] {
        let text = try await scene.database.execute(
            """
            SELECT 'origin', count(*), 16, 0 FROM origins o CROSS JOIN LATERAL lanes_to(o.id) GROUP BY o.id HAVING count(*) > 16
            UNION ALL
            SELECT g.name, count(*), g.max_connections, (
                SELECT extract(epoch FROM coalesce(max(l.granted_at), '-infinity')) FROM leases l
                WHERE l.group_id = g.id AND l.origin_id > 0
                    AND l.lane IN (SELECT b.lane FROM lanes_of(g.id) AS b ORDER BY b.lane OFFSET g.max_connections))
            FROM groups g CROSS JOIN LATERAL lanes_of(g.id)
            GROUP BY g.id HAVING count(*) > g.max_connections
            """)
        return text.split(separator: "\n").map(String.init).filter { line in
            let words = line.split(separator: "|")
            guard words.count == 4, words[0] != "origin", let granted = Double(words[3]) else { return true }
            return ledger.hasKeptCap(of: String(words[0]), since: Date(timeIntervalSince1970: granted))
        }
    }

    /// Waits until no work is left: the remains of cancelled tasks are deleted only after the tasks have ended.
    func waitForQuiet() async throws {
        let work = "SELECT (SELECT count(*) FROM leases) + (SELECT count(*) FROM ready_chunks WHERE kind = 'purge')"
        try await eventually("the end of all work") {
            try await scene.database.execute(work).hasPrefix("0")
        }
        // A failed task keeps its part for a retry, but not in a group that was cancelled.
        let text = try await scene.database.execute(
            "SELECT t.id FROM tasks t JOIN groups g ON g.id = t.group_id WHERE t.state = 'failed' AND g.state <> 'cancelled'"
        )
        let failed = Set(text.split(separator: "\n"))
        let start = ContinuousClock.now
        do {
            // Mostly the parts are gone at once. Once in six storms it took half a minute: the parts that are left after ten seconds are printed.
            var isTold = false
            try await eventually("the end of the parts but those of \(failed)", limit: .seconds(90)) {
                let left = fleet.parts().filter { !failed.contains($0.prefix { $0 != "." }) }
                if !left.isEmpty, !isTold, ContinuousClock.now - start > .seconds(10) {
                    isTold = true
                    print("storm: parts are left after ten seconds: \(left)")
                }
                return left.isEmpty
            }
        } catch let error as TimedOut {
            let tasks = try await scene.database.execute(
                "SELECT t.id, t.state, t.version, t.fenced, t.started_at, t.finished_at, g.state FROM tasks t JOIN groups g ON g.id = t.group_id"
            )
            for part in fleet.parts() {
                let task = tasks.split(separator: "\n").first { $0.hasPrefix("\(part.prefix { $0 != "." })|") }
                print("storm: \(part) is left of \(task ?? "a task that was removed")")
            }
            throw error
        }
    }

    private func outcomes() async throws -> [String: Outcome] {
        // The canary's files were checked one by one.
        let text = try await scene.database.execute(
            "SELECT t.path, t.state, t.version FROM tasks t JOIN groups g ON g.id = t.group_id WHERE g.name <> '\(StormCanary.group)'"
        )
        var outcomes: [String: Outcome] = [:]
        for line in text.split(separator: "\n") {
            let words = line.split(separator: "|")
            guard words.count == 3, let state = TaskState(rawValue: String(words[1])), let version = Int(words[2])
            else {
                throw Unexpected("no task: \(line)")
            }
            outcomes[String(words[0])] = Outcome(state: state, version: version)
        }
        return outcomes
    }

    /// The files of succeeded tasks are in place (I8). The sink has no file of a task that was cancelled, or removed with its file (I13),
    /// and no file that no client asked for. Every file in place is whole and right. A task whose deadline passed at the moment when its
    /// file was put in place keeps the file for a retry, as it keeps its part.
    private func checkFiles(_ outcomes: [String: Outcome], _ events: [EventDocument]) throws {
        let files = ledger.files
        var standing = Set(try Self.standing(in: fleet.sink))
        var counts: [String: Int] = [:]
        var left: [String] = []
        for (path, file) in files {
            let stands = standing.remove(path) != nil
            let outcome = outcomes[path]
            counts[outcome?.state.rawValue ?? "removed", default: 0] += 1
            switch outcome?.state {
            case .succeeded:
                #expect(stands, "\(path) succeeded and is not there: \(ledger.removals(of: path))")
                report.checked("I8")
            case .failed: break
            case .cancelled, nil:
                // An earlier task of that path may have left its file.
                if stands, !ledger.removals(of: path).contains(.keep) { left.append(path) }
                report.checked("I13")
            case .queued, .active, .paused, .finalizing:
                Issue.record("\(path) has not ended")
            }
            if stands {
                #expect(try FileDigest.sha256(fleet.sink.appending(path)) == file.sha256, "\(path) has wrong bytes")
            }
        }
        #expect(standing.isEmpty, "no client asked for these")
        let histories = left.map { path in "\(path): \(events.filter { $0.key == path }.map(\.type))" }
        #expect(histories.isEmpty, "these were cancelled or removed")
        report.tell("files that were asked for", "\(files.count)")
        for (state, count) in counts.sorted(by: { $0.key < $1.key }) { report.tell("  \(state)", "\(count)") }
    }

    /// The paths of all files in a sink but Muster's own.
    private static func standing(in sink: FilePath) throws -> [String] {
        var found: [String] = []
        for folder in try FileManager.default.contentsOfDirectory(atPath: sink.string) where !others.contains(folder) {
            let path = sink.appending(folder).string
            found += try FileManager.default.contentsOfDirectory(atPath: path).map { "\(folder)/\($0)" }
        }
        return found
    }

    /// Each generation of each group has ended at most once (I7), including groups that were removed. What the database still has of them
    /// is in the invariants.
    private func checkEndings(_ events: [EventDocument]) {
        var endings: [String: Int] = [:]
        for event in events where Fleet.Ending(event) != nil {
            endings[event.id.split(separator: "-").prefix(3).joined(separator: "-"), default: 0] += 1
        }
        #expect(endings.values.allSatisfy { $0 == 1 }, "\(endings.filter { $0.value != 1 })")
        report.checked("I7", times: endings.count)
        report.tell("events, generations that ended", "\(events.count), \(endings.count)")
    }

    /// A worker that takes up a chunk which another worker left fetches again at most the bytes that were not durable yet (I16): those of
    /// one interval of reports, and those in the buffers of two sockets. A cut response wastes no more than that, nor does a response whose
    /// bytes another one brought too.
    private func checkWaste(_ outcomes: [String: Outcome]) throws {
        let served = scene.origins.served
        var total: Int64 = 0
        var wasted: Int64 = 0
        var allowed: Int64 = 0
        for (path, file) in ledger.files where file.isServedByNginxAlone && ledger.removals(of: path).isEmpty {
            let number = path.split(separator: "/").last.flatMap { Int($0.dropLast(4)) }
            guard let outcome = outcomes[path], outcome.state == .succeeded, outcome.version == 1,
                let responses = number.flatMap({ served[$0] })
            else { continue }
            let waste = responses.reduce(0) { $0 + $1.bodyBytesSent } - file.size
            let bound = Int64(Self.dispensable(responses, size: file.size)) * Self.mostInVain
            let seen = responses.map { "\($0.range ?? "-") -> \($0.status) \($0.bodyBytesSent)" }
            #expect(waste <= bound, "\(path): \(waste) wasted bytes of \(file.size): \(seen)")
            total += file.size
            wasted += waste
            allowed += bound
            report.checked("I16")
        }
        report.tell("bytes that nginx alone served", "\(total)")
        report.tell("of them fetched twice, allowed by I16", "\(wasted), \(allowed)")
    }

    /// What one response that is cut may cost: an interval of reports and what is under way, in the buffers of two sockets and of a path, and what
    /// an origin sends while the path holds it back.
    private static let mostInVain =
        Int64(3 + StormFault.longestHoldSeconds) * Int64(StormOrigins.rate) + (512 << 10)
        + Int64(DistantPath.mostHeldBytes)

    /// How many of the responses may have wasted bytes: those that were cut, and the whole ones that the file did not need.
    private static func dispensable(_ responses: [NginxServer.Request], size: Int64) -> Int {
        var cut = 0
        var whole = 0
        var isFileThere = size == 0
        for response in responses {
            let asked = response.range.map { Self.length(of: $0, size: size) } ?? size
            if response.bodyBytesSent < asked { cut += 1 } else { whole += 1 }
            isFileThere = isFileThere || response.bodyBytesSent == size
        }
        let chunks = max(1, Int((size + (1 << 20) - 1) >> 20))
        return cut + max(0, whole - (isFileThere ? 1 : chunks))
    }

    /// How many bytes of a file of this size a Range asks for.
    private static func length(of range: String, size: Int64) -> Int64 {
        let ends = range.drop { $0 != "=" }.dropFirst().split(separator: "-", omittingEmptySubsequences: false)
        let first = ends.first.flatMap { Int64($0) } ?? 0
        let last = ends.dropFirst().first.flatMap { Int64($0) } ?? .max
        return max(0, min(size, last == .max ? size : last + 1) - first)
    }
}
