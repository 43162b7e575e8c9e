import MusterCore
import MusterStore

extension StoreModel {
    /// Whether a session may be granted leases.
    private func isEligible(_ request: ClaimRequest) -> Bool {
        guard let session = sessions[request.session] else { return false }
        return session.sequence == request.sequence && !session.isExpired && !session.isDraining && !session.isParked
    }

    /// Takes over the store's grants; returns which were not allowed, and which are missing.
    mutating func grant(_ requests: [ClaimRequest], _ leases: [GrantedLease]) -> [String] {
        step += 1
        var wrong: [String] = []
        let before = connections
        let served = Set(leased.map { [$0.group, $0.origin] })
        for lease in leases {
            guard let request = requests.first(where: { $0.session == lease.session }), isEligible(request) else {
                wrong.append("session \(lease.session) may not be granted anything")
                continue
            }
            let held = Lease(
                session: lease.session, sync: request.sequence, epoch: lease.name.epoch, grantedAt: step,
                lane: Lane(session: lease.session, number: lease.lane, origin: lease.origin, group: lease.group))
            if (lease.kind == .fetch) != (lease.lane > 0) { wrong.append("lease \(lease.name) has lane \(lease.lane)") }
            if lease.name.epoch <= newestEpoch { wrong.append("I1: epoch \(lease.name.epoch) is not new") }
            switch lease.kind {
            case .purge:
                let leftover = Leftover(lease)
                if purges[leftover]?.status != .ready { wrong.append("purge of \(lease.task) is not ready") }
                purges[leftover]?.status = .leased(held)
            case .resolve: wrong += grantQuestion(lease, held)
            // A history's workers first request only the first chunk of a file, so that no task needs a trial.
            case .trial: wrong.append("task \(lease.task) needs no trial")
            case .fetch, .finalize: wrong += grantChunk(lease, held)
            }
        }
        for lease in leases {
            guard let origin = origin(of: lease), let learned = origins[origin]?.learned else { continue }
            if lanes(to: origin).count > learned { seen.insert(.grown) }
        }
        newestEpoch = leases.map(\.name.epoch).max().map { max($0, newestEpoch) } ?? newestEpoch
        for request in requests where isEligible(request) {
            let own = leases.filter { $0.session == request.session }
            let begun = own.filter { $0.lane == 0 || !before.contains([$0.session.rawValue, $0.lane]) }
            let opened = Set(begun.map(\.lane)).subtracting([0]).count
            if own.count > begun.count { seen.insert(.queued) }
            let spare: Int32 = request.spare && request.room == 0 ? 1 : 0
            if own.count > Int(request.room + request.ahead + spare) || opened > Int(request.room + spare) {
                wrong.append("session \(request.session) got more than its room")
            }
            if spare > 0, let lease = begun.first(where: { $0.lane > 0 }) {
                seen.insert(.spared)
                if let origin = origin(of: lease), served.contains([lease.group, origin]) {
                    wrong.append("group \(lease.group) has a connection to \(origin) already")
                }
            }
            let isFull = leaseCount { $0.session == request.session } >= Int(policy.leasesPerSession)
            guard own.count < Int(request.room + request.ahead), !isFull else { continue }
            // Leases without a lane may have taken room of both kinds.
            if opened + own.count(where: { $0.lane == 0 }) < Int(request.room), let idle = claimable {
                wrong.append("session \(request.session) got \(own.count) although \(idle) is free")
            }
        }
        return wrong + overfull(leases.filter { !before.contains([$0.session.rawValue, $0.lane]) })
    }

    /// Grants beyond an origin's current allowance. A halving recalls no lease, so that only origins with a newly opened lane count (I5).
    private func overfull(_ leases: [GrantedLease]) -> [String] {
        let touched = leases.filter { $0.kind == .fetch }.compactMap { origin(of: $0) }
        return Set(touched).filter { lanes(to: $0).count > allowed($0) }.map { "I5: \($0) has more than it is allowed" }
    }

    private mutating func grantQuestion(_ lease: GrantedLease, _ held: Lease) -> [String] {
        guard let place = places[lease.task], let question = self[place]?.question else { return ["nobody asks that"] }
        var wrong: [String] = []
        if question.status != .ready || groups[place.group]?.mayRun != true {
            wrong.append("the question of \(place) may not be leased")
        }
        if lease.source != Int32(question.source) || lease.freshURL != nil || lease.resolver == nil || lease.url == nil
        {
            wrong.append("the question of \(place) is another one: \(lease)")
        }
        self[place]?.question?.status = .leased(held)
        return wrong
    }

    private mutating func grantChunk(_ lease: GrantedLease, _ held: Lease) -> [String] {
        guard let place = places[lease.task], var task = self[place],
            let index = task.chunks.firstIndex(where: {
                $0.kind == lease.kind && $0.first == lease.start && $0.last == lease.end
            })
        else { return ["there is no such chunk of task \(lease.task)"] }
        var wrong: [String] = []
        let source = Int(lease.source)
        if source != task.chunks[index].source {
            if !mayPull(task.chunks[index], of: task, to: source) {
                wrong.append("\(place) may not go to source \(source)")
            }
            seen.insert(task.chunks[index].durable > task.chunks[index].first ? .taken : .pulled)
            task.chunks[index].source = source
            task.chunks[index].origin = task.sources[source].origin
        }
        task.chunks[index].reach = reachBeside(task.chunks[index], of: task, by: lease.session)
        task.chunks[index].isPiece = task.chunks[index].reach != nil
        let chunk = task.chunks[index]
        if !isFree(chunk, of: place) { wrong.append("\(place) may not be leased") }
        let isOther = chunk.kind == .fetch && task.teacher.map { $0 != chunk.source } ?? false
        if lease.reach != chunk.reach || lease.resume.offset != chunk.durable || lease.version != task.version
            || lease.isFenced != task.isFenced
            || lease.isPlanned != task.isPlanned || lease.rung != task.rung || lease.isOtherMirror != isOther
            || (lease.freshURL != nil) != (chunk.kind == .fetch && task.sources[chunk.source].resolvedAt > 0)
        {
            wrong.append("the lease of \(place) says something else: \(lease) instead of \(chunk)")
        }
        var held = held
        held.lane.origin = chunk.origin
        task.chunks[index].status = .leased(held)
        task.chunks[index].resume = chunk.durable
        if chunk.kind == .fetch {
            task.state = .active
            task.wasStarted = true
        }
        self[place] = task
        return wrong
    }

    func isFree(_ chunk: Chunk, of place: Place) -> Bool {
        guard chunk.status == .ready, let owner = groups[place.group], !owner.state.isTerminal else { return false }
        if isDisputed(chunk, of: place) { return false }
        // Finalizing goes on in a paused group too.
        return chunk.kind == .finalize || owner.mayRun && origins[chunk.origin]?.isParked != true
    }

    /// Whether a source may take a chunk from another one: no try of the chunk has failed, and the bytes are known to be the same
    /// content (range contract, row 30).
    func mayPull(_ chunk: Chunk, of task: Task, to source: Int) -> Bool {
        chunk.kind == .fetch && chunk.status == .ready && chunk.attempts == 0 && task.mixes
            && !task.sources[source].isDead && task.sources[source].differsIn != task.version
            && task.question?.source != source
    }

    /// A chunk, question or purge that could still be leased within all caps.
    private var claimable: String? {
        if purges.values.contains(where: { $0.status == .ready }) { return "a purge" }
        for (name, group) in groups {
            for (key, task) in group.tasks {
                let place = Place(group: name, key: key)
                if let question = task.question, isFree(question, of: place) { return "the question of \(key)" }
                for chunk in task.chunks where chunk.status == .ready {
                    if chunk.kind == .finalize, isFree(chunk, of: place) { return "the finalizing of \(key)" }
                    let isGroupFull = group.maxConnections.map { lanes(of: name).count >= $0 } ?? false
                    guard chunk.kind == .fetch, !isGroupFull else { continue }
                    let others = task.sources.indices.filter { mayPull(chunk, of: task, to: $0) }.map {
                        task.sources[$0].origin
                    }
                    for origin in [chunk.origin] + others {
                        var moved = chunk
                        moved.origin = origin
                        if isFree(moved, of: place), lanes(to: origin).count < allowed(origin) {
                            return "\(name)/\(key) from \(chunk.first) at \(origin)"
                        }
                    }
                }
            }
        }
        return nil
    }

    private func leaseCount(_ isMeant: (Lease) -> Bool) -> Int {
        let tasks = groups.values.flatMap(\.tasks.values)
        let chunks = tasks.flatMap(\.chunks) + tasks.compactMap(\.question) + purges.values
        return chunks.count { $0.lease.map(isMeant) ?? false }
    }
}
