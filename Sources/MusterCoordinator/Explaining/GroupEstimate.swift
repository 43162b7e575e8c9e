import MusterAPI
import MusterCore

/// When a group will be done: a pure function of the facts, which says that it can't be told rather than to guess.
struct GroupEstimate: Sendable {
    /// What there is to know.
    let facts: GroupFacts

    /// The estimate.
    var document: GroupExplanationDocument.Estimate {
        if let because = ended { return unknown(because) }
        if let because = obstacle { return unknown(because, earliest: earliest) }
        guard let fastest = Pace.seconds(facts.rest, at: pace) else {
            return unknown("nothing comes now", earliest: earliest)
        }
        let seconds = max(
            fastest, isPaced ? 0 : max(slowest.flatMap { Self.seconds(of: $0) } ?? 0, lastChunk), untilDue,
            earliest.map { Self.seconds($0.since(facts.at)) } ?? 0)
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

    /// The origin whose share of the rest takes longest. One that nothing comes from is slower than all others, and of those whose
    /// rest isn't known the one with the most to do for each byte per second.
    var slowest: GroupFacts.Origin? {
        guard !facts.group.state.isTerminal else { return nil }
        return origins.max { left, right in
            let (a, b) = (Self.slowness(left), Self.slowness(right))
            return a == b ? left.key > right.key : a < b
        }
    }

    /// The origins that there is something to do at, with what is left there where that is known in full. What is left at a
    /// single one is what is left of the group.
    private var origins: [GroupFacts.Origin] {
        var busy = facts.origins.filter { $0.own > 0 || $0.ready.number > 0 }
        let isKnown = !facts.hasMoreOrigins && facts.group.bytes.unknownTasks == 0 && facts.group.tasks.paused == 0
        // All that comes, comes from there; leases that were granted just now have brought nothing yet.
        if busy.count == 1, !facts.hasMoreOrigins, facts.group.bytesPerSecond > 0 {
            busy[0].ownBytesPerSecond = facts.group.bytesPerSecond
        }
        if busy.count == 1, isKnown {
            busy[0].bytesLeft = facts.rest
        } else if !isKnown || facts.putOff.chunks.number > 0 {
            for index in busy.indices { busy[index].bytesLeft = nil }
        }
        return busy
    }

    /// How fast the group is from now on, in bytes per second: as it was, unless it may not be as fast any more.
    private var pace: Int64 {
        guard let allowed else { return facts.group.bytesPerSecond }
        // What comes in lumps has no speed that says anything.
        return GroupFacts.comesInLumps(allowed) ? allowed : min(allowed, facts.group.bytesPerSecond)
    }

    /// The most that may come now.
    private var allowed: Int64? {
        [facts.bytesPerSecondAllowed, facts.fleet?.bytesPerSecondLimit].compactMap { $0 }.min()
    }

    /// Whether the rate of the group, or of the fleet, sets the pace. Then what one transfer does not get another one gets, and a slow one ends as
    /// soon as the others leave it more: only the whole rest counts.
    private var isPaced: Bool {
        facts.bytesPerSecondAllowed.map { facts.group.bytesPerSecond >= $0 - $0 / 4 } ?? false
            || facts.fleet.map { $0.bytesPerSecond >= $0.bytesPerSecondLimit - $0.bytesPerSecondLimit / 4 } ?? false
    }

    /// Whether everything that the end depends on was looked at.
    private var isComplete: Bool {
        !facts.hasMoreOrigins && !facts.putOff.chunks.more && origins.allSatisfy { Self.seconds(of: $0) != nil }
    }
}

extension GroupEstimate {
    /// How long the group's rest at an origin takes at the speed that it has from there; `nil` when that isn't known.
    static func seconds(of origin: GroupFacts.Origin) -> Int64? {
        origin.bytesLeft.flatMap { Pace.seconds($0, at: origin.ownBytesPerSecond) }
    }

    /// What is to do at an origin for each byte per second. Chunks that nobody has yet count as much as those that somebody has.
    private static func slowness(_ origin: GroupFacts.Origin) -> Double {
        if let left = origin.bytesLeft { return Double(left) / Double(max(1, origin.ownBytesPerSecond)) }
        let leased = Double(origin.ownBytesLeft)
        let chunk = origin.own > 0 ? max(1, leased / Double(origin.own)) : Double(Limits.chunk.lowerBound.bytes)
        return (leased + chunk * Double(origin.ready.number)) / Double(max(1, origin.ownBytesPerSecond))
    }

    private func moment(after seconds: Int64) -> Timestamp {
        Timestamp(microseconds: facts.at.microseconds + seconds * 1_000_000)
    }

    /// Seconds until what is put off, or waits for a paused origin, can go on at all.
    private var untilDue: Int64 {
        let moments =
            facts.origins.filter { $0.ready.number > 0 }.compactMap(\.pausedUntil)
            + (facts.putOff.chunks.number > 0 ? [facts.putOff.firstDue].compactMap { $0 } : [])
        return moments.map { Self.seconds($0.since(facts.at)) }.max() ?? 0
    }

    /// Whole seconds, rounded up; none for what has been.
    private static func seconds(_ duration: Duration) -> Int64 { max(0, (duration.milliseconds + 999) / 1_000) }

    /// Seconds that the slowest chunk of now takes.
    private var lastChunk: Int64 {
        facts.straggler.flatMap { straggler in
            straggler.bytesLeft.flatMap { Pace.seconds($0, at: straggler.bytesPerSecond) }
        } ?? 0
    }

    private func unknown(_ because: String, earliest: Timestamp? = nil) -> GroupExplanationDocument.Estimate {
        GroupExplanationDocument.Estimate(seconds: nil, earliest: earliest, latest: latest, because: because)
    }

    /// When it ends whatever comes: what is not done by then fails.
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

    /// Why nobody can know when it ends, the surest reason first.
    private var obstacle: String? {
        let tasks = facts.group.tasks
        if facts.isPaused { return "it is paused, and nobody knows when it is resumed" }
        if let lost = facts.prerequisites.first(where: { $0.state.isTerminal }) {
            return "it waits for the group \"\(lost.group)\", which has \(GroupExplanation.ending(lost.state))"
        }
        if let other = facts.prerequisites.first {
            return "it waits for the group \"\(other.group)\", and begins only after that"
        }
        if facts.group.state == .open { return "it is open, and nobody knows how many tasks are still to come" }
        if tasks.paused > 0 { return "\(GroupExplanation.counted(tasks.paused)) paused, and nobody knows until when" }
        if facts.workers.areAllSilent, let silence = WaitSentence.silence(facts.workers.silent, at: facts.at) {
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

    /// Before when it can't be done: what comes now is not fast enough, or isn't even allowed to be.
    private var earliest: Timestamp? {
        guard !facts.isPaused else { return nil }
        var bounds: [Timestamp] = []
        if case .closed(let until?) = facts.window, facts.group.tasks.queued + facts.group.tasks.active > 0 {
            bounds.append(until)
        }
        if facts.putOff.chunks.number > 0, let due = facts.putOff.firstDue { bounds.append(due) }
        // A timetable may allow more later.
        if facts.group.limits.timetable == nil, let rate = allowed,
            let seconds = Pace.seconds(facts.rest, at: rate), seconds > 0, seconds <= Pace.longest
        {
            bounds.append(moment(after: seconds))
        }
        // What is due already will begin with one of the next claims.
        return bounds.filter { $0 > facts.at }.max()
    }
}
