import MusterCore
import MusterStore

extension StoreModel {
    /// A failed lease: the failure's kind, status and offset, and whether its origin rests.
    struct Failure {
        var kind: FailureKind
        var status: Int?
        var offset: Int64
        var parksOrigin: Bool

        /// Whether the origin says that there were too many requests at once.
        var isTooMuch: Bool { parksOrigin || kind.limitSignal(status: status) == .certain }
    }

    /// Applies the failure of a lease, with a jitter that always makes a backoff wait.
    mutating func fail(_ lease: GrantedLease, by session: SessionID, _ failure: Failure) {
        progress(lease, by: session, to: failure.offset, isFailure: true)
        step += 1
        if let leftover = findPurge(lease, by: session) {
            purges[leftover]?.status = .waiting
            return
        }
        if let place = findQuestion(lease, by: session), let question = self[place]?.question {
            // A storage failure says nothing about a question.
            if failure.kind.rule == .returnChunk { return putBack(lease.name.epoch) }
            return failQuestion(place, question)
        }
        guard let (place, index) = find(lease, by: session), let task = self[place] else { return }
        let chunk = task.chunks[index]
        guard failure.kind.rule != .returnChunk else { return putBack(lease.name.epoch) }
        if spare(place, chunk, failure) { return }
        // A file that is wrong as a whole counts against the source from which the version was learned.
        let source = chunk.kind == .finalize ? task.teacher ?? chunk.source : chunk.source
        if chunk.kind == .fetch || failure.kind == .digestMismatch { self[place]?.sources[source].failures += 1 }
        if failure.parksOrigin, chunk.kind == .fetch { origins[chunk.origin, default: Origin()].isParked = true }
        if chunk.kind == .fetch, failure.kind.isExpiry(status: failure.status) {
            if renew(place, chunk, source) { return }
        } else if chunk.kind == .fetch, failure.kind == .changed, let teacher = task.teacher, teacher != source {
            if leaveMirror(place, chunk, source) { return }
        }
        followRule(place, chunk, source, failure)
    }

    /// A URL that may have expired (range contract, row 21); returns whether the failure was handled.
    private mutating func renew(_ place: Place, _ chunk: Chunk, _ ordinal: Int) -> Bool {
        guard let task = self[place], let lease = chunk.lease else { return false }
        let source = task.sources[ordinal]
        let asks = groups[place.group]?.hasResolver ?? false
        let worked =
            chunk.durable > chunk.first || source.bytes > 0
            || task.isPlanned && (task.teacher ?? ordinal) == ordinal
        guard asks || worked else { return false }
        let isAsked = task.question != nil
        let isEcho = lease.grantedAt < max(source.resolvedAt, source.askedAt)
        let bytes =
            !task.goesOn
            ? 0 : task.sources.count > 1 ? source.bytes + chunk.durable - chunk.resume : Self.bytes(of: task)
        let refreshes = bytes == source.refreshedBytes ? source.refreshes : 0
        if !isAsked, !isEcho, refreshes >= (asks ? Int(policy.attempts) : 1) { return false }
        if isAsked { seen.insert(.askedOnce) } else if isEcho { seen.insert(.late) }

        putBack(lease.epoch)
        guard var after = self[place] else { return true }
        // A plain GET that came back starts the task over; the resolver is then not asked any more.
        if !isAsked || after.version != task.version {
            if isEcho { return true }
            after.sources[ordinal].askedAt = step
            after.sources[ordinal].refreshes = refreshes + 1
            after.sources[ordinal].refreshedBytes = bytes
            if asks {
                seen.insert(.asked)
                after.question = Chunk(
                    kind: .resolve, last: 0, source: ordinal, status: refreshes == 0 ? .ready : .waiting)
            }
        }
        if asks {
            for index in after.chunks.indices
            where after.chunks[index].lease == nil && after.chunks[index].source == ordinal {
                after.chunks[index].status = .waiting
            }
        }
        self[place] = after
        return true
    }

    /// A question that failed.
    private mutating func failQuestion(_ place: Place, _ question: Chunk) {
        guard var task = self[place] else { return }
        task.attempts = max(task.attempts, question.attempts + 1)
        guard question.attempts + 1 >= Int(policy.attempts) else {
            task.question?.attempts += 1
            task.question?.status = .waiting
            self[place] = task
            return
        }
        seen.insert(.unanswered)
        task.question = nil
        task.sources[question.source].isDead = true
        self[place] = task
        if task.sources.allSatisfy(\.isDead) { return fail(place) }
        guard let next = next(task, after: question.source, staying: false), !task.isPlanned || task.mixes else {
            let next = next(task, after: question.source, staying: false)
            return startOver(place, source: next ?? question.source, attempts: 0, deaths: 0)
        }
        move(&task, from: question.source, to: next)
        for index in task.chunks.indices where task.chunks[index].status == .waiting {
            task.chunks[index].status = .ready
        }
        self[place] = task
    }

    /// Drops a mirror that doesn't fit this version (row 30); returns whether another source goes on.
    mutating func leaveMirror(_ place: Place, _ chunk: Chunk, _ source: Int) -> Bool {
        guard let task = self[place], let lease = chunk.lease else { return false }
        self[place]?.sources[source].differsIn = task.version
        guard let left = self[place], let next = next(left, after: source, staying: false) else { return false }
        seen.insert(.left)
        putBack(lease.epoch)
        if var after = self[place], after.version == task.version {
            move(&after, from: source, to: next)
            self[place] = after
        }
        return true
    }

    /// Applies the rule of a failure: all failures count as tries, except signs of too many requests at once.
    private mutating func followRule(_ place: Place, _ chunk: Chunk, _ source: Int, _ failure: Failure) {
        guard let lease = chunk.lease else { return }
        let counts = heedLimit(place, chunk, failure)
        guard var task = self[place] else { return }
        let hasBrought = chunk.hasProgress(in: task, after: failure.kind)
        let before = hasBrought ? 0 : chunk.attempts
        // A body that was cut is resumed at once.
        let goesOn = counts == nil && hasBrought && [.network, .tooSlow].contains(failure.kind)
        var rule = counts != nil ? .retry : failure.kind.rule
        // The holder was not allowed to look if the task still had other sources.
        if rule == .nextSource, chunk.kind == .fetch, task.sources.count > 1, before == 0, task.rung != .whole,
            task.sources.indices.allSatisfy({ $0 == chunk.source || task.sources[$0].isDead })
        {
            rule = .retry
        }
        var attempts = before + (counts == false ? 0 : 1)
        let bound = chunk.kind == .fetch ? tries(of: task) : Int(policy.attempts)
        // A task doesn't fail because of a limit that may pass.
        if counts != nil, attempts >= bound, failure.status != nil, !failure.parksOrigin,
            origins[chunk.origin]?.hasServed ?? false, task.sources[chunk.source].failures <= 32
        {
            attempts = before
        }
        if attempts > before { task.attempts = max(task.attempts, attempts) }
        self[place] = task
        switch rule {
        case .startOver where failure.kind == .digestMismatch: return fetchAgain(place, chunk, source)
        case .startOver: return acceptChange(place, chunk, source)
        case .giveUp: return fail(place, reported: lease.epoch)
        case .retry where attempts >= bound && attempts > before:
            return fail(place, reported: lease.epoch)
        case .setBack where attempts >= bound && attempts > before:
            return fail(place, reported: lease.epoch)
        case .setBack: return setBack(place, lease, attempts)
        case .nextSource where chunk.kind != .fetch && attempts >= bound:
            return fail(place, reported: lease.epoch)
        case .nextSource where chunk.kind == .fetch:
            let round = sources(of: task)
            if !task.sources[source].isDead, round > 1 {
                // Its tries were not those of the others.
                attempts -= attempts / round
                for index in task.chunks.indices { task.chunks[index].attempts -= task.chunks[index].attempts / round }
            }
            if !task.sources[source].isDead, task.sources[source].refusedWith == nil, chunk.durable == 0,
                let status = failure.status, (400..<500).contains(status)
            {
                task.sources[source].refusedWith = status
            }
            task.sources[source].isDead = true
            self[place] = task
            guard task.sources.allSatisfy(\.isDead) else { break }
            guard askOnceMore(place, besides: source) else { return fail(place, reported: lease.epoch) }
            attempts = 0
        case .retry, .nextSource, .returnChunk: break
        }
        guard chunk.kind == .fetch else {
            putBack(lease.epoch)
            self[place]?.chunks[0].attempts = attempts
            self[place]?.chunks[0].status = .waiting
            return
        }

        if rule == .retry, failure.kind.rule == .retry, !task.isPlanned, chunk.durable == chunk.resume {
            // A source that is out is no reason to leave one that serves others.
            _ = askOnceMore(place, besides: chunk.source)
            task = self[place] ?? task
        }
        let isAlone = task.isPlanned && !task.mixes
        let keeps = Self.keepsAnything(task, chunk)
        let stays =
            keeps && isAlone && (attempts < 3 && task.goesOn || task.restarts + 1 >= Int(policy.contentVersions))
        var chosen = next(task, after: chunk.source, staying: stays)
        if let found = chosen, found <= chunk.source, attempts >= 3,
            task.restarts + 1 < Int(policy.contentVersions),
            // The others have had their turns.
            let skipped = task.sources.indices.first(where: {
                $0 != chunk.source && !task.sources[$0].isDead && task.sources[$0].differsIn == task.version
            })
        {
            chosen = skipped
        }
        guard let next = chosen,
            next == chunk.source || !isAlone && task.sources[next].differsIn != task.version
        else {
            if rule == .retry, keeps { self[place]?.restarts += 1 }
            let other = chosen ?? chunk.source
            startOver(
                place, source: other, attempts: attempts, deaths: chunk.deaths, reported: lease.epoch)
            // All sources have had their turn.
            if rule == .retry, other < chunk.source, self[place]?.chunks[0].status == .ready {
                self[place]?.chunks[0].status = .waiting
            }
            return
        }
        putBack(lease.epoch)
        guard var after = self[place] else { return }
        if rule == .nextSource { move(&after, from: source, to: next) }
        guard let index = after.chunks.firstIndex(where: { task.rung == .whole || $0.first == chunk.first }) else {
            return
        }
        after.chunks[index].attempts = attempts
        after.chunks[index].source = next
        after.chunks[index].origin = after.sources[next].origin
        after.chunks[index].status = rule == .retry && next <= chunk.source && !goesOn ? .waiting : .ready
        self[place] = after
    }

    /// Whether starting over would lose bytes: a first response alone may have planned the version.
    private static func keepsAnything(_ task: Task, _ chunk: Chunk) -> Bool {
        guard task.isPlanned else { return false }
        return chunk.first > 0 || chunk.durable > chunk.first || task.done.contains { $0.first > 0 }
            || task.chunks.contains {
                $0.kind == .fetch && $0.first > 0 && ($0.lease == nil ? $0.resume : $0.durable) > $0.first
            }
    }

    /// Makes all remaining chunks of the task wait.
    private mutating func setBack(_ place: Place, _ lease: Lease, _ attempts: Int) {
        putBack(lease.epoch)
        guard var after = self[place] else { return }
        for index in after.chunks.indices where [.fetch, .finalize].contains(after.chunks[index].kind) {
            guard after.chunks[index].lease == nil, after.chunks[index].status != .parked else { continue }
            after.chunks[index].attempts = max(after.chunks[index].attempts, attempts)
            after.chunks[index].status = .waiting
        }
        self[place] = after
    }

    /// Whether a failure is a sign of too many requests at once (row 24), and if so, whether it counts as a try.
    mutating func heedLimit(_ place: Place, _ chunk: Chunk, _ failure: Failure) -> Bool? {
        guard chunk.kind == .fetch, let task = self[place], let lease = chunk.lease else { return nil }
        var signal = failure.kind.limitSignal(status: failure.status)
        // A file whose other chunks are served exists.
        let isServed = task.chunks.contains {
            $0.lease != nil && $0.lease?.epoch != lease.epoch && $0.kind == .fetch && $0.source == chunk.source
                && $0.durable > $0.resume
        }
        if signal == .none, failure.kind.rule == .nextSource, task.isPlanned, isServed,
            (400..<500).contains(failure.status ?? 0)
        {
            signal = .possible
        }
        guard signal != .none else { return nil }
        let origin = origins[chunk.origin, default: Origin()]
        let isEcho = lease.grantedAt <= origin.limitedAt
        let isShared =
            isEcho || busyLanes(to: chunk.origin).count > 1 || lease.grantedAt <= origin.refusedAt
        if signal == .possible {
            guard mayBeLimit(place, task, chunk, failure, isShared: isShared) else { return nil }
            // One more try, in case the lanes that shared the origin have just ended; more tries if the origin is known to have limits.
            let patience = origin.learned == nil ? 1 : 4
            guard isShared else {
                // Histories are shorter than a limit lasts.
                let mayPass =
                    task.isPlanned && failure.status != nil && !failure.parksOrigin && origin.hasServed
                    && task.sources[chunk.source].failures <= 32
                let tries = task.isPlanned ? patience : task.sources[chunk.source].bytes > 0 ? 3 : 5
                let isPatient = chunk.attempts < tries || mayPass
                return failure.kind != .network && isPatient ? true : nil
            }
        }
        origins[chunk.origin, default: Origin()].refusedAt = step
        if isEcho {
            seen.insert(.echoed)
            return false
        }
        guard isShared else { return true }
        // Histories are too short for the rule about rare refusals.
        seen.insert(.halved)
        let allowed = allowed(chunk.origin)
        let learned = max(1, allowed / 2, min(allowed, servedBeside(lease.lane, at: chunk.origin)))
        origins[chunk.origin] = Origin(
            isParked: origin.isParked, learned: learned, minutes: 0, limitedAt: step, refusedAt: step,
            hasServed: origin.hasServed, refusesWith: origin.refusesWith)
        return learned == allowed
    }

    /// Whether a refusal that may have another reason may be a limit. Histories are too short for the case of files that are served after all.
    private mutating func mayBeLimit(
        _ place: Place, _ task: Task, _ chunk: Chunk, _ failure: Failure, isShared: Bool
    ) -> Bool {
        // An origin that limits this way ends connections before an answer.
        if failure.kind == .network { return chunk.durable < chunk.resume + 65_536 }
        if task.isPlanned {
            return (task.teacher ?? chunk.source) == chunk.source || task.sources[chunk.source].bytes > 0
        }
        let isLast = task.sources.indices.allSatisfy { $0 == chunk.source || task.sources[$0].isDead }
        guard isLast || task.sources[chunk.source].isAskedAgain, let status = failure.status else { return false }
        guard origins[chunk.origin, default: Origin()].refusesWith[status, default: 0] < 3 else { return false }
        if task.sources[chunk.source].bytes > 0 { return true }
        if isShared, chunk.attempts < 2, task.sources[chunk.source].failures < 9 { return true }
        guard chunk.attempts > 0 || origins[chunk.origin]?.learned != nil else { return false }
        origins[chunk.origin, default: Origin()].refusesWith[status, default: 0] += 1
        if origins[chunk.origin]?.refusesWith[status] == 3 { origins[chunk.origin]?.learned = nil }
        return false
    }

    private mutating func acceptChange(_ place: Place, _ chunk: Chunk, _ source: Int) {
        guard let task = self[place] else { return }
        self[place]?.restarts += 1
        if task.restarts + 2 >= Int(policy.contentVersions) { self[place]?.sources[source].rung = .whole }
        startOver(place, source: source, attempts: 0, deaths: chunk.deaths, reported: chunk.lease?.epoch)
        say("task.changed", place, version: task.version + 1)
        if task.restarts + 1 >= Int(policy.contentVersions) { fail(place) }
    }

    /// A wrong digest (row 29): fetches once more from the same source, and then once from every other source.
    private mutating func fetchAgain(_ place: Place, _ chunk: Chunk, _ source: Int) {
        guard var task = self[place] else { return }
        if task.isClean { task.sources[source].isDead = true }
        task.sources[source].rung = .whole
        task.isClean = true
        self[place] = task
        let living = task.sources.indices.filter { !task.sources[$0].isDead }
        let next = living.contains(source) ? source : living.first { $0 > source } ?? living.first
        seen.insert(next == source ? .again : .elsewhere)
        startOver(place, source: next ?? source, attempts: 0, deaths: chunk.deaths, reported: chunk.lease?.epoch)
        say("task.changed", place, version: task.version + 1)
        if next == nil { fail(place) }
    }
}
