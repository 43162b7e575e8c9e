import MusterCore
import MusterStore

@testable import MusterStoreModel

extension History {
    /// Takes one random step; the steps of a worker are the most frequent.
    mutating func step() async throws {
        // The model has no clock: how long answers count is left out.
        try await fixture.forgetAnswers()
        for name in model.origins.keys { model.origins[name]?.hasServed = false }
        let choice = Int.random(in: 0..<110, using: &random)
        // In some themes, claims, reports and refusals replace most verbs and losses, or verbs replace some of the work.
        let refusals = [10, 10, 10, 30, 30, 30, 64, 64, 67, 68, 106]
        let wishes = [0, 10, 30, 30, 90, 90, 90, 100, 104, 104, 104]
        let others =
            switch theme {
            case .many, .few: [choice]
            case .sources: choice >= 70 && chance(80) ? refusals : [choice]
            case .groups: (40..<84).contains(choice) ? wishes : [choice]
            }
        switch others.randomElement(using: &random) ?? choice {
        case 0..<6 where theme == .many || theme == .groups || chance(40): try await addTasks()
        case 0..<9: try await openSession()
        case 9..<28: try await claim()
        case 28..<64: try await report()
        case 64..<67: try await refuseBurst()
        case 67: try await failAgainAndAgain()
        case 68..<70: try await passMinute()
        case 70..<76: try await syncAgain()
        case 76..<81: try await loseSession()
        case 81..<85: try await passTime()
        case 85..<98: try await verb()
        case 100..<104: try await sweep()
        case 104..<106: try await change()
        case 106..<110: try await cutAndRefuse()
        default:
            log("sequence events")
            _ = try await store.sequenceEvents(limit: 3)
        }
    }

    mutating func addTasks() async throws {
        let name = someGroup()
        if model.groups[name] == nil {
            let cap: Int32? = chance(30) ? 3 : nil
            let hasResolver = chance(50)
            log(
                "create \(name), at most \(cap.map { "\($0)" } ?? "any") leases\(hasResolver ? ", with a resolver" : "")"
            )
            try await fixture.makeGroup(
                name, maxConnections: cap, resolver: hasResolver ? #"{"url": "http://resolver.test/"}"# : nil)
            model.groups[name] = StoreModel.Group(
                maxConnections: cap.map { Int($0) }, hasResolver: hasResolver)
        }
        var tasks: [Wanted] = []
        additions += 1
        for _ in 0..<Int.random(in: 1...3, using: &random) {
            let key = "k\(Int.random(in: 0..<(theme == .many ? 7 : 2), using: &random))"
            guard !tasks.contains(where: { $0.key == key }) else { continue }
            let several = [["a", "b"], ["b", "c", "a"], ["c", "a", "b"]]
            let sets = theme == .sources ? several + [["a"]] : several + [["a"], ["b"]]
            let origins = sets.randomElement(using: &random) ?? ["a"]
            let size: Int64? = chance(50) ? self.size() : nil
            tasks.append(Wanted(key, size: size, origins: origins, path: "\(name)/\(key).\(additions)"))
        }
        let reopening = chance(30)
        let shown = tasks.map { "\($0.key) of \($0.size.map { "\($0)" } ?? "?") from \($0.origins)" }
        log("add \(shown) to \(name)\(reopening ? ", reopening it" : "")")
        let wanted = model.add(
            tasks.map { .init(key: $0.key, origins: $0.origins, size: $0.size) }, to: name, reopening: reopening)
        do {
            let addition = try await fixture.add(tasks, to: name, reopening: reopening)
            expect(addition == wanted, "\(addition) instead of \(String(describing: wanted))")
        } catch is Store.Refusal {
            expect(wanted == nil, "the tasks were refused")
        }
        for task in try await store.tasks(of: name, state: nil, after: nil, limit: 1_000) {
            model.places[task.id] = StoreModel.Place(group: name, key: task.key)
        }
    }

    /// A random file size; a chunk has 100 bytes.
    mutating func size() -> Int64 {
        Int64.random(in: (theme == .sources ? 300 : 0)...550, using: &random)
    }

    mutating func openSession() async throws {
        let worker = try await fixture.makeWorker("w\(sessions.count % 3)")
        log("open session \(worker.session)")
        sessions.append(worker.session)
        model.sessions[worker.session] = StoreModel.Session()
    }

    mutating func claim() async throws {
        var requests: [ClaimRequest] = []
        for session in sessions.suffix(4) where requests.isEmpty || chance(40) {
            try await sync(session)
            let isOld = chance(10)
            let isFull = chance(10)
            requests.append(
                ClaimRequest(
                    session: session, sequence: (model.sessions[session]?.sequence ?? 1) - (isOld ? 1 : 0),
                    room: isFull ? 0 : Int32.random(in: 1...5, using: &random),
                    ahead: chance(50) ? Int32.random(in: 1...6, using: &random) : 0, spare: isFull))
        }
        log("claim \(requests.map { "\($0.room) by \($0.session) in \($0.sequence)" })")
        let leases = try await store.claim(requests)
        log("  granted \(leases.map { "\($0.kind) \($0.path) \($0.name.chunk).\($0.name.epoch) to \($0.session)" })")
        problems += model.grant(requests, leases)
        // Chunks that a claim deferred for a moment are ready again for the next claim.
        try await fixture.endDeferrals(of: model.disputed)
        granted += leases
    }

    private static let parkedSink = #"[{"name": "sink", "parked": "storage"}]"#

    /// A sync; by default it settles nothing, so that nothing is repaired.
    private mutating func sync(_ session: SessionID, settled: Int64 = 0, held: [GrantedLease] = []) async throws {
        let sequence = (model.sessions[session]?.sequence ?? 0) + 1
        let isParked = chance(5)
        let renewed = try await store.renew(
            SessionRenewal(
                session: session, sequence: sequence, sinkStatus: isParked ? Self.parkedSink : "[]", receivedBytes: 10),
            settled: settled, held: held.map(\.name), timeToLive: .seconds(3600))
        guard model.sessions[session] != nil else {
            return expect(renewed == nil, "a session that is over was renewed")
        }
        model.sessions[session]?.sequence = sequence
        model.sessions[session]?.isExpired = false
        model.sessions[session]?.isParked = isParked
        model.letGo(session, settled: settled, holding: held)
        var repaired: Int64 = 0
        model.putBack(isLost: false) { lease in
            let isRepaired =
                lease.session == session && lease.sync <= settled && !held.contains { $0.name.epoch == lease.epoch }
            if isRepaired { repaired += 1 }
            return isRepaired
        }
        let lost = held.filter { !model.isHeld($0, by: session) }
        expect(renewed?.repaired == repaired, "\(renewed?.repaired ?? -1) leases repaired instead of \(repaired)")
        expect(Set(renewed?.lost ?? []) == Set(lost.map(\.name)), "the wrong leases are lost")
        expect(renewed?.isDraining == model.sessions[session]?.isDraining, "draining is wrong")
    }

    private mutating func syncAgain() async throws {
        guard let session = sessions.suffix(4).randomElement(using: &random) else { return }
        let newest = model.sessions[session]?.sequence ?? 0
        if chance(20) {
            log("late sync of \(session)")
            let renewed = try await store.renew(
                SessionRenewal(
                    session: session, sequence: newest - 1, sinkStatus: Self.parkedSink, receivedBytes: 0),
                settled: newest, held: [], timeToLive: .seconds(0))
            return expect(renewed?.isNewest != true, "a late sync counts as the newest")
        }
        let settled = Int64.random(in: 0...max(0, newest), using: &random)
        var held: [GrantedLease] = []
        for lease in granted where lease.session == session && chance(80) { held.append(lease) }
        log("sync \(session), settled \(settled), holding \(held.map(\.name.epoch))")
        try await sync(session, settled: settled, held: held)
    }

    private mutating func loseSession() async throws {
        guard let session = sessions.suffix(4).randomElement(using: &random) else { return }
        switch Int.random(in: 0..<6, using: &random) {
        case 0:
            log("close session \(session)")
            try await store.closeSession(session)
            model.end(session, isLost: false)
        case 1:
            log("session \(session) expires and nobody looks")
            try await fixture.set(.expiry, ago: .seconds(1), of: session.rawValue)
            model.sessions[session]?.isExpired = true
        case 2:
            guard let lease = granted.randomElement(using: &random) else { return }
            log("lease \(lease.name.epoch) stalls")
            try await fixture.stall(lease)
            _ = try await store.sweepStalled(stall: .seconds(3600))
            model.putBack(isLost: true) { $0.epoch == lease.name.epoch }
        case 3:
            log("all of the installation is killed")
            try await store.expireAllSessions()
            _ = try await store.sweepSessions()
            for other in Array(model.sessions.keys) { model.end(other, isLost: true, isKilled: true) }
        default:
            log("session \(session) expires")
            try await fixture.expire(session)
            for (other, state) in model.sessions where other == session || state.isExpired {
                model.end(other, isLost: true)
            }
        }
    }

    mutating func passTime() async throws {
        log("time passes")
        try await fixture.passBackoffs()
        try await fixture.set(.rest, ago: .zero)
        model.promote()
        for name in model.origins.keys { model.origins[name]?.isParked = false }
    }

    /// After a minute an origin that refused may have one more lease.
    private mutating func passMinute() async throws {
        log("a minute passes without refusals")
        try await fixture.passMinute()
        for name in model.origins.keys { model.origins[name]?.minutes += 1 }
        try await passTime()
        try await claim()
    }

    private mutating func verb() async throws {
        let name = someGroup()
        guard model.groups[name] != nil else { return }
        let keys = someKeys(name)
        // Rare without help: a group completes, and is reopened.
        let isComplete = model.groups[name]?.tasks.values.allSatisfy(\.state.isTerminal) ?? false
        let isOver = model.groups[name]?.state.isTerminal ?? false
        let choice = Int.random(in: 0..<22, using: &random)
        // A request in the middle of finalizing.
        if model.groups[name]?.tasks.values.contains(where: { $0.state == .finalizing }) ?? false, chance(30) {
            return try await apply(.pause, name, keys)
        }
        switch isComplete && chance(50) ? (isOver ? 14 : 0) : choice {
        case 0..<4:
            log("seal \(name)")
            model.seal(name)
            _ = try await store.seal(name)
        case 4..<8: try await apply(.pause, name, keys)
        case 8..<12: try await apply(.resume, name, keys)
        case 12..<14: try await apply(.cancel, name, keys)
        case 14..<18: try await apply(.retry, name, keys)
        case 20..<22:
            log("reopen \(name)")
            model.reopen(name)
            _ = try await store.reopen(name)
        default:
            let isDeleting = chance(50)
            log("remove \(name) \(keys ?? ["all"])")
            let isDone = model.remove(name, keys: keys, deletingFiles: isDeleting)
            do {
                try await store.remove(name, keys: keys, deletingFiles: isDeleting)
                expect(isDone, "a group was removed that others wait for")
            } catch Store.Refusal.groupInUse {
                expect(!isDone, "the removal was refused")
            }
        }
    }

    mutating func apply(_ verb: TaskVerb, _ name: String, _ keys: [String]?) async throws {
        log("\(verb) \(name) \(keys ?? ["all"])")
        model.apply(verb, to: name, keys: keys)
        _ = try await store.apply(verb, to: name, keys: keys)
    }
}
