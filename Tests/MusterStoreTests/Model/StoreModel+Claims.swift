import MusterCore
import MusterStore

extension StoreModel {
    /// Whether a session may be granted anything.
    private func isEligible(_ request: ClaimRequest) -> Bool {
        guard let session = sessions[request.session] else { return false }
        return session.sequence == request.sequence && !session.isExpired && !session.isDraining && !session.isParked
    }

    /// Takes over what the store granted, and says what of it was not allowed, or what is missing.
    mutating func grant(_ requests: [ClaimRequest], _ leases: [GrantedLease]) -> [String] {
        var wrong: [String] = []
        for lease in leases {
            guard let request = requests.first(where: { $0.session == lease.session }), isEligible(request) else {
                wrong.append("session \(lease.session) may not be granted anything")
                continue
            }
            let held = Lease(session: lease.session, sync: request.sequence, epoch: lease.name.epoch)
            if lease.name.epoch <= newestEpoch { wrong.append("I1: epoch \(lease.name.epoch) is not new") }
            if lease.kind == .purge {
                if purges[lease.task]?.status != .ready { wrong.append("purge of \(lease.task) is not ready") }
                purges[lease.task]?.status = .leased(held)
            } else {
                wrong += grantChunk(lease, held)
            }
        }
        newestEpoch = leases.map(\.name.epoch).max().map { max($0, newestEpoch) } ?? newestEpoch
        for request in requests where isEligible(request) {
            let granted = leases.count { $0.session == request.session }
            if granted > Int(request.room) { wrong.append("session \(request.session) got more than its room") }
            let isFull = leaseCount { $0.session == request.session } >= Int(policy.leasesPerSession)
            if granted < Int(request.room), !isFull, let idle = claimable {
                wrong.append("session \(request.session) got \(granted) although \(idle) is free")
            }
        }
        return wrong
    }

    private mutating func grantChunk(_ lease: GrantedLease, _ held: Lease) -> [String] {
        guard let place = places[lease.task], var task = self[place],
            let index = task.chunks.firstIndex(where: {
                $0.kind == lease.kind && $0.first == lease.start && $0.last == lease.end
            })
        else { return ["there is no such chunk of task \(lease.task)"] }
        var wrong: [String] = []
        let chunk = task.chunks[index]
        if !isFree(chunk, of: task, in: place.group) { wrong.append("\(place) may not be leased") }
        if lease.resume.offset != chunk.durable || lease.version != task.version
            || lease.isFenced != task.isFenced || lease.isPlanned != task.isPlanned || lease.isStream != task.isStream
            || lease.source != Int32(chunk.source)
        {
            wrong.append("the lease of \(place) says something else: \(lease) instead of \(chunk)")
        }
        task.chunks[index].status = .leased(held)
        task.chunks[index].resume = chunk.durable
        if chunk.kind == .fetch {
            task.state = .active
            task.wasStarted = true
        }
        self[place] = task
        return wrong
    }

    private func isFree(_ chunk: Chunk, of task: Task, in group: String) -> Bool {
        guard chunk.status == .ready, let owner = groups[group], !owner.state.isTerminal else { return false }
        // What is being put in place goes on in a paused group too.
        return chunk.kind == .finalize || owner.desired == "run" && !parkedOrigins.contains(task.sources[chunk.source])
    }

    /// Something that could be leased still, with all caps kept.
    private var claimable: String? {
        if purges.values.contains(where: { $0.status == .ready }) { return "a purge" }
        for (name, group) in groups {
            for (key, task) in group.tasks {
                for chunk in task.chunks where isFree(chunk, of: task, in: name) {
                    if chunk.kind == .finalize { return "the finalizing of \(key)" }
                    let isGroupFull = group.maxConnections.map { fetches(in: name) >= $0 } ?? false
                    let origin = task.sources[chunk.source]
                    if !isGroupFull && fetches(from: origin) < Int(policy.leasesPerOrigin) {
                        return "\(name)/\(key) from \(chunk.first)"
                    }
                }
            }
        }
        return nil
    }

    private func leaseCount(_ isMeant: (Lease) -> Bool) -> Int {
        let chunks = groups.values.flatMap { $0.tasks.values.flatMap(\.chunks) } + purges.values
        return chunks.count { $0.lease.map(isMeant) ?? false }
    }

    private func fetches(in group: String) -> Int {
        groups[group]?.tasks.values.reduce(0) { $0 + $1.leases } ?? 0
    }

    private func fetches(from origin: String) -> Int {
        groups.values.flatMap(\.tasks.values).reduce(0) { sum, task in
            sum + task.chunks.count { $0.kind == .fetch && $0.lease != nil && task.sources[$0.source] == origin }
        }
    }
}
