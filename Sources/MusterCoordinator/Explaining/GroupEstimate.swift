import MusterAPI
import MusterCore
import MusterStore

/// Estimates when a group will be done: a pure function of the facts. It says that the end is unknown rather than guess.
struct GroupEstimate: Sendable {
    /// The facts that the estimate is made from.
    let facts: GroupFacts

    private var situation: GroupSituation { facts.situation }

    /// The estimate as a document of the API.
    var document: GroupExplanationDocument.Estimate {
        if let because = ended { return unknown(because) }
        if let because = obstacle { return unknown(because, earliest: earliest) }
        guard let fastest = Pace.seconds(facts.rest, at: pace) else {
            return unknown("nothing comes now", earliest: earliest)
        }
        let seconds = max(
            fastest, isPaced ? 0 : max(slowest.flatMap { Self.seconds(of: $0) } ?? 0, lastChunk), untilDue,
            earliest.map { Self.seconds($0.since(situation.at)) } ?? 0)
        guard seconds <= Pace.longest else {
            return unknown("so little comes that it would take more than a year", earliest: earliest)
        }
        if case .open(let until) = facts.window, moment(after: seconds) > until {
            return unknown("\(speech), and its window closes before that, at \(until)", earliest: earliest)
        }
        return GroupExplanationDocument.Estimate(
            seconds: seconds, earliest: earliest,
            latest: latest, because: speech)
    }

    /// The origin whose share of the remaining bytes takes longest. An origin that sends nothing is slower than all others.
    /// Origins with an unknown remainder compare by the work for each byte per second.
    var slowest: GroupSituation.Origin? {
        guard !facts.group.state.isTerminal else { return nil }
        return origins.max { left, right in
            let (a, b) = (Self.slowness(left), Self.slowness(right))
            return a == b ? left.origin.key > right.origin.key : a < b
        }
    }

    /// The origins with work left, and their remaining bytes where these are known in full. The remaining bytes of a single
    /// origin are those of the group.
    private var origins: [GroupSituation.Origin] {
        var busy = situation.origins.filter { $0.connections > 0 || $0.readyChunks > 0 }
        let isKnown = !facts.hasMoreOrigins && facts.group.bytes.unknownTasks == 0 && facts.group.tasks.paused == 0
        // All bytes come from this origin. Leases that were granted just now have brought nothing yet, so its own speed may
        // be too low.
        if busy.count == 1, !facts.hasMoreOrigins, facts.group.bytesPerSecond > 0 {
            busy[0].bytesPerSecond = facts.group.bytesPerSecond
        }
        if busy.count == 1, isKnown {
            busy[0].bytesLeftInAll = facts.rest
        } else if !isKnown || facts.putOff.number > 0 {
            for index in busy.indices { busy[index].bytesLeftInAll = nil }
        }
        return busy
    }

    /// The speed of the group from now on, in bytes per second: its recent speed, but no more than what is allowed now.
    private var pace: Int64 {
        guard let allowed else { return facts.group.bytesPerSecond }
        // A measured speed says nothing when bytes come in lumps.
        return GroupFacts.comesInLumps(allowed) ? allowed : min(allowed, facts.group.bytesPerSecond)
    }

    /// The allowed rate now, in bytes per second.
    private var allowed: Int64? {
        [facts.bytesPerSecondAllowed, situation.fleet?.bytesPerSecondLimit].compactMap { $0 }.min()
    }

    /// Whether a rate of the group or of the fleet limits the speed. Then the transfers share the rate: a slow transfer
    /// gets faster as soon as the others end, so only the total of remaining bytes counts.
    private var isPaced: Bool {
        facts.bytesPerSecondAllowed.map { facts.group.bytesPerSecond >= $0 - $0 / 4 } ?? false
            || situation.fleet.map { $0.bytesPerSecond >= $0.bytesPerSecondLimit - $0.bytesPerSecondLimit / 4 } ?? false
    }

    /// Whether the facts cover everything that the end depends on.
    private var isComplete: Bool {
        !facts.hasMoreOrigins && !facts.putOff.more && origins.allSatisfy { Self.seconds(of: $0) != nil }
    }
}

extension GroupEstimate {
    /// Seconds that the group's remaining bytes at an origin take at its speed from there; `nil` if unknown.
    static func seconds(of origin: GroupSituation.Origin) -> Int64? {
        origin.bytesLeftInAll.flatMap { Pace.seconds($0, at: origin.bytesPerSecond) }
    }

    /// The remaining bytes at an origin for each byte per second. Chunks without a lease count as much as leased chunks.
    private static func slowness(_ origin: GroupSituation.Origin) -> Double {
        if let left = origin.bytesLeftInAll { return Double(left) / Double(max(1, origin.bytesPerSecond)) }
        let leased = Double(origin.bytesLeft)
        let chunk =
            origin.connections > 0 ? max(1, leased / Double(origin.connections)) : Double(Limits.chunk.lowerBound.bytes)
        return (leased + chunk * Double(origin.ready.number)) / Double(max(1, origin.bytesPerSecond))
    }

    private func moment(after seconds: Int64) -> Timestamp {
        Timestamp(microseconds: situation.at.microseconds + seconds * 1_000_000)
    }

    /// Seconds until chunks that are put off, or that wait for a paused origin, can go on.
    private var untilDue: Int64 {
        let moments =
            situation.origins.filter { $0.readyChunks > 0 }.compactMap(\.origin.pausedUntil)
            + (facts.putOff.number > 0 ? [situation.putOff.dueAt].compactMap { $0 } : [])
        return moments.map { Self.seconds($0.since(situation.at)) }.max() ?? 0
    }

    /// Whole seconds, rounded up; 0 for the past.
    private static func seconds(_ duration: Duration) -> Int64 { max(0, (duration.milliseconds + 999) / 1_000) }

    /// Seconds that the slowest current chunk takes.
    private var lastChunk: Int64 {
        facts.straggler.flatMap { straggler in
            straggler.bytesLeft.flatMap { Pace.seconds($0, at: straggler.bytesPerSecond) }
        } ?? 0
    }

    private func unknown(_ because: String, earliest: Timestamp? = nil) -> GroupExplanationDocument.Estimate {
        GroupExplanationDocument.Estimate(seconds: nil, earliest: earliest, latest: latest, because: because)
    }

    /// The latest end: the deadline at which unfinished tasks fail.
    private var latest: Timestamp? {
        guard !facts.group.state.isTerminal, facts.group.onDeadline ?? .fail == .fail else { return nil }
        return facts.group.deadlineAt
    }

    private var speech: String {
        let come = pace != facts.group.bytesPerSecond ? "may come" : "come"
        let all = "\(ByteCount(bytes: facts.rest)) are left, and \(ByteCount(bytes: pace))/s \(come)"
        guard origins.count > 1, !isComplete else { return all }
        return "\(all); an origin that ends later than the others is not foreseen"
    }
}

extension GroupEstimate {
    private var ended: String? {
        facts.group.state.isTerminal ? "it has \(GroupExplanation.ending(facts.group.state))" : nil
    }

    /// Why the end is unknown; the most certain reason first.
    private var obstacle: String? {
        let tasks = facts.group.tasks
        if facts.isPaused { return "it is paused until it is resumed" }
        if let lost = facts.prerequisites.first(where: { $0.state.isTerminal }) {
            return "it waits for the group \"\(lost.group)\", which has \(GroupExplanation.ending(lost.state))"
        }
        if let other = facts.prerequisites.first {
            return "it waits for the group \"\(other.group)\", and begins only after that"
        }
        if facts.group.state == .open { return "it is open: more tasks may come" }
        if tasks.paused > 0 { return "\(GroupExplanation.counted(tasks.paused)) paused for an unknown time" }
        if facts.workers.areAllSilent, let silence = WaitSentence.silence(facts.workers.silent, at: situation.at) {
            return silence
        }
        if facts.workers.reaching == 0 { return "no worker reaches the sink \"\(facts.group.sink)\"" }
        if facts.workers.isSinkParked {
            return "the sink \"\(facts.group.sink)\" is in trouble at every worker"
        }
        if case .closed = facts.window, tasks.queued + tasks.active > 0 { return "its window is closed" }
        let unknown = facts.group.bytes.unknownTasks
        if unknown > 0 {
            return "the size\(unknown == 1 ? "" : "s") of \(unknown) task\(unknown == 1 ? " is" : "s are") unknown"
        }
        if facts.unfinished == tasks.finalizing { return "all is fetched; how long the verification takes isn't known" }
        return tasks.active == 0 ? "nothing of it is being fetched now" : nil
    }

    /// The earliest possible end: the latest of the moments before which a window, a put-off chunk or the allowed rate
    /// keeps the group from ending.
    private var earliest: Timestamp? {
        guard !facts.isPaused else { return nil }
        var bounds: [Timestamp] = []
        if case .closed(let until?) = facts.window, facts.group.tasks.queued + facts.group.tasks.active > 0 {
            bounds.append(until)
        }
        if facts.putOff.number > 0, let due = situation.putOff.dueAt { bounds.append(due) }
        // A timetable may allow more later.
        if facts.group.limits.timetable == nil, let rate = allowed,
            let seconds = Pace.seconds(facts.rest, at: rate), seconds > 0, seconds <= Pace.longest
        {
            bounds.append(moment(after: seconds))
        }
        // A moment in the past is no bound: that work begins with one of the next claims.
        return bounds.filter { $0 > situation.at }.max()
    }
}
