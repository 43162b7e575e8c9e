import MusterCore

@testable import MusterStore
@testable import MusterStoreModel

/// Sessions and grants.
extension SimulatedDatabase.State {
    /// Opens a session.
    mutating func open(_ opening: SessionOpening, until expires: Int64) -> OpenedSession {
        if mark == nil { mark = opening.marks["default"] }
        last.session += 1
        let id = SessionID(last.session)
        sessions[id] = .init(expires: expires, worker: opening.worker)
        model.sessions[id] = StoreModel.Session()
        if let previous = opening.previous, sessions[previous]?.worker == opening.worker {
            sessions[previous]?.expires = .min
        }
        return OpenedSession(id: id, marks: mark.map { ["default": $0] } ?? [:])
    }

    /// Renews a session, and compares what both sides hold; `nil` if it is over.
    mutating func renew(
        _ renewal: SessionRenewal, settled: Int64, held: [LeaseName], until expires: Int64
    ) -> RenewedSession? {
        let id = renewal.session
        guard let session = sessions[id], session.expires > .min, var known = model.sessions[id] else { return nil }
        if renewal.sequence > known.sequence {
            known.sequence = renewal.sequence
            known.isParked = renewal.sinkStatus.contains("\"parked\"")
            sessions[id]?.expires = expires
        }
        model.sessions[id] = known
        let isNewest = known.sequence == renewal.sequence
        var repaired: Int64 = 0
        if isNewest {
            model.letGo(id, settled: settled, holding: held.compactMap { granted[$0] })
            let epochs = Set(held.map(\.epoch))
            let lost = granted.values.filter { lease in
                guard lease.session == id, !epochs.contains(lease.name.epoch) else { return false }
                return isHeld(lease.name, by: id) && (self.lease(lease.name)?.sync ?? .max) <= settled
                    && !locked.contains(lease.group)
            }
            let gone = Set(lost.map(\.name.epoch))
            if !gone.isEmpty {
                repaired = Int64(gone.count)
                count("an answer with leases was lost")
                model.putBack(isLost: false) { gone.contains($0.epoch) }
            }
        }
        return RenewedSession(
            isNewest: isNewest, isDraining: known.isDraining, repaired: repaired,
            lost: held.filter { !isHeld($0, by: id) })
    }

    private func lease(_ name: LeaseName) -> StoreModel.Lease? {
        guard let lease = granted[name] else { return nil }
        if lease.kind == .purge { return model.findPurge(lease, by: lease.session).flatMap { model.purges[$0]?.lease } }
        return model.find(lease, by: lease.session).flatMap { model[$0.place]?.chunks[$0.index].lease }
    }

    /// Ends expired sessions, and takes back what they held.
    mutating func sweep(now: Int64) {
        for id in sessions.keys.sorted() where sessions[id].map({ $0.expires < now }) ?? false {
            sessions[id] = nil
            revocations.insert(id)
            count("a session expired")
            model.end(id, isLost: true)
        }
    }

    /// Grants leases.
    mutating func claim(_ requests: [ClaimRequest], _ chance: (Int64) -> Bool) -> [GrantedLease] {
        var leases: [GrantedLease] = []
        var chosen = model
        chosen.step += 1
        for request in requests {
            guard let session = model.sessions[request.session], session.sequence == request.sequence,
                sessions[request.session] != nil, !session.isDraining, !session.isParked
            else { continue }
            var (room, ahead) = (request.room, request.ahead)
            while room + ahead > 0, let lease = next(request.session, &room, &ahead, &chosen, chance) {
                leases.append(lease)
                granted[lease.name] = lease
                byEpoch[lease.name.epoch] = lease.name
                newest[lease.name.chunk] = lease.name.epoch
                _ = chosen.grant([request], [lease])
                chosen.step -= 1
            }
        }
        // The model judges each grant again. What it says of grants that are missing is its own view of paths.
        for problem in model.grant(requests, leases) where !problem.contains("although") { complaints.append(problem) }
        return leases
    }

    private mutating func next(
        _ session: SessionID, _ room: inout Int32, _ ahead: inout Int32, _ chosen: inout StoreModel,
        _ chance: (Int64) -> Bool
    ) -> GrantedLease? {
        let purges = chosen.purges.filter { $0.value.status == .ready }.keys
            .sorted { ($0.task, $0.version, $0.takesFile ? 1 : 0) < ($1.task, $1.version, $1.takesFile ? 1 : 0) }
        if room > 0, let leftover = purges.first {
            room -= 1
            return grantPurge(leftover, to: session)
        }
        for id in ids {
            guard let known = facts[id], !known.isRemoved, let task = chosen[known.place],
                !locked.contains(known.place.group)
            else { continue }
            for chunk in task.chunks where chunk.status == .ready && chosen.isFree(chunk, of: known.place) {
                if chosen.mayPlace(chunk, of: task), isDisputed(known.path) { continue }
                if chunk.kind == .finalize {
                    guard room > 0 else { continue }
                    room -= 1
                    return grant(chunk, of: id, task, to: session, lane: 0, chosen)
                }
                guard let lane = lane(for: chunk, of: known.place, session, &room, &ahead, chosen, chance) else {
                    continue
                }
                return grant(chunk, of: id, task, to: session, lane: lane, chosen)
            }
        }
        return nil
    }

    /// A lane for a chunk: a new one within the caps, or one that the session has to the same origin, in which the chunk waits.
    private func lane(
        for chunk: StoreModel.Chunk, of place: StoreModel.Place, _ session: SessionID, _ room: inout Int32,
        _ ahead: inout Int32, _ chosen: StoreModel, _ chance: (Int64) -> Bool
    ) -> Int64? {
        let lanes = chosen.connections.filter { $0[0] == session.rawValue }.map { $0[1] }
        let open = chosen.lanes(to: chunk.origin)
        let isFull =
            chosen.groups[place.group]?.maxConnections.map { chosen.lanes(of: place.group).count >= $0 } ?? false
        if room > 0, open.count < chosen.allowed(chunk.origin), !isFull {
            room -= 1
            return (lanes.max() ?? 0) + 1
        }
        guard ahead > 0,
            let own = chosen.busyLanes(to: chunk.origin).filter({ $0[0] == session.rawValue }).min(by: {
                $0[1] < $1[1]
            }), chance(500)
        else { return nil }
        ahead -= 1
        return own[1]
    }

    private mutating func name(_ key: SimulatedDatabase.ChunkKey) -> LeaseName {
        last.epoch += 1
        return LeaseName(chunk: id(of: key), epoch: LeaseEpoch(last.epoch))
    }

    private mutating func grantPurge(_ leftover: StoreModel.Leftover, to session: SessionID) -> GrantedLease {
        let first: Int64 = leftover.takesFile ? 1 : 0
        let key = SimulatedDatabase.ChunkKey(
            task: leftover.task, version: leftover.version, kind: .purge, first: first)
        return GrantedLease(
            session: session, name: name(key), lane: 0, kind: .purge, task: leftover.task, group: "", key: "",
            path: leftover.takesFile ? facts[leftover.task]?.path ?? "" : "", version: Int32(leftover.version),
            size: sizesToRemove[leftover.task], revoke: revocations.sorted())
    }

    private mutating func grant(
        _ chunk: StoreModel.Chunk, of id: TaskID, _ task: StoreModel.Task, to session: SessionID, lane: Int64,
        _ chosen: StoreModel
    ) -> GrantedLease? {
        guard let known = facts[id] else { return nil }
        let key = SimulatedDatabase.ChunkKey(task: id, version: task.version, kind: chunk.kind, first: chunk.first)
        var representation = Representation(size: task.size)
        if let known = learned[id], known.version == task.version {
            representation = known.representation
            representation.size = task.size
        }
        let isFetch = chunk.kind == .fetch
        if chunk.durable > chunk.first { count("a chunk was resumed") }
        let done = task.done.sorted { $0.first < $1.first }.compactMap { range -> FinishedChunk? in
            let key = SimulatedDatabase.ChunkKey(task: id, version: task.version, kind: .fetch, first: range.first)
            return ByteRange(start: range.first, end: range.last).map {
                FinishedChunk(range: $0, crc: checksums[key] ?? 0)
            }
        }
        return GrantedLease(
            session: session, name: name(key), lane: lane, kind: chunk.kind, task: id, group: known.place.group,
            key: known.place.key, path: known.path, version: Int32(task.version), start: chunk.first, end: chunk.last,
            isPlanned: task.isPlanned, rung: task.rung, isFenced: task.isFenced,
            resume: DurablePrefix(
                offset: chunk.durable, crc: chunk.durable > chunk.first ? checksums[key] ?? 0 : 0),
            representation: representation, expectedSize: task.expected, source: Int32(chunk.source),
            isOtherMirror: isFetch && task.teacher.map { $0 != chunk.source } ?? false,
            isLastTry: chunk.attempts + 1 >= model.tries(of: task),
            reach: isFetch ? chosen.reachBeside(chunk, of: task, by: session) : nil,
            url: isFetch ? known.urls[chunk.source] : nil, chunks: chunk.kind == .finalize ? done : [],
            origin: isFetch ? "http://\(chunk.origin):80" : nil, revoke: revocations.sorted())
    }
}

extension GrantedLease {
    /// A lease without options, digests and secrets.
    init(
        session: SessionID, name: LeaseName, lane: Int64, kind: LeaseKind, task: TaskID, group: String, key: String,
        path: String, version: Int32, start: Int64 = 0, end: Int64? = nil, isPlanned: Bool = false,
        rung: Rung = .chunks, isFenced: Bool = false, resume: DurablePrefix = DurablePrefix(offset: 0, crc: 0),
        representation: Representation? = nil, size: Int64? = nil, expectedSize: Int64? = nil, source: Int32 = 0,
        isOtherMirror: Bool = false, isLastTry: Bool = false, reach: Int64? = nil, url: String? = nil,
        chunks: [FinishedChunk] = [], origin: String? = nil, revoke: [SessionID]
    ) {
        self.init(
            session: session, name: name, lane: lane, kind: kind, task: task, group: group, key: key, sink: "default",
            path: path, version: version, start: start, end: end, isPlanned: isPlanned, rung: rung, isFenced: isFenced,
            resume: resume, representation: representation ?? Representation(size: size), expectedSize: expectedSize,
            expectedDigests: nil, contentType: nil, source: source, isOtherMirror: isOtherMirror, earlier: nil,
            isLastTry: isLastTry, asksForAll: false, looks: nil, mayMoveOn: false, round: nil, reach: reach,
            pace: reach == nil ? nil : 0, slowTries: 0, url: url, headers: nil, freshURL: nil, freshHeaders: nil,
            groupOptions: nil, taskOptions: nil, policy: nil, resolver: nil, failureStatus: nil, chunks: chunks,
            origin: origin, isLimited: false, have: nil, revoke: revoke)
    }
}
