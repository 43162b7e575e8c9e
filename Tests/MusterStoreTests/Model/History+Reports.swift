import MusterCore
import MusterStore

@testable import MusterStoreModel

extension History {
    /// Reports on a lease that is or was held; sometimes by a session that never held it.
    mutating func report() async throws {
        let held = granted.filter { model.isHeld($0, by: $0.session) }
        let holders = Set(held.map(\.name.chunk))
        // Late reports matter most when another session holds the chunk by now.
        let late = granted.filter { holders.contains($0.name.chunk) && !model.isHeld($0, by: $0.session) }
        // Rare without help: a pause is requested while a file is being put in place, and that fails then.
        let pausing = held.filter { isPausing($0) }
        // Rare as well: a chunk that was given back a part of the file ends before its holder has heard of that.
        let regained = held.filter { hasRegained($0) }
        let choice =
            !pausing.isEmpty && chance(60)
            ? pausing : !regained.isEmpty && chance(30) ? regained : chance(15) ? granted : chance(20) ? late : held
        guard let lease = choice.randomElement(using: &random) else { return }
        let session = chance(95) ? lease.session : sessions.randomElement(using: &random) ?? lease.session
        let worker = TestWorker(fixture: fixture, session: session)
        let found = model.find(lease, by: session)
        let task = found.flatMap { model[$0.place] }
        let chunk = found.flatMap { model[$0.place]?.chunks[$0.index] }
        let first = chunk?.first ?? lease.start
        let offset = Int64.random(in: first...(chunk?.last ?? first + 150), using: &random)
        let what = "\(lease.path) \(lease.name.chunk).\(lease.name.epoch) by \(session)"

        if lease.kind == .finalize, let found, task?.isPausing == false, chance(35) {
            return try await apply(.pause, found.place.group, [found.place.key])
        }
        switch hasRegained(lease) && chance(50) ? 8 : reportChoice(lease, task) {
        case 0..<4:
            let offset = chance(90) ? offset : offset + 50
            log("progress \(what) to \(offset)")
            let isHeld = model.progress(lease, by: session, to: offset)
            expect(
                try await worker.progress(lease, to: offset) == isHeld, "the progress was \(isHeld ? "lost" : "taken")")
        case 4..<8 where lease.kind == .fetch:
            let durable = chunk?.durable ?? 0
            let isSplittable =
                (chunk?.last != nil || task?.rung == .stream) && task?.rung != .whole
                && chance(theme == .sources ? 95 : 85)
            let size: Int64? =
                isSplittable || chance(50) ? max(durable, self.size()) : nil
            log("learned of \(what): \(size.map { "\($0)" } ?? "?"), \(isSplittable ? "ranges" : "all at once")")
            let isStrong = chance(theme == .sources ? 90 : 70)
            let isHeld = model.learn(
                lease, by: session, size: size, isSplittable: isSplittable, isStrong: isStrong)
            expect(
                try await worker.learn(
                    lease, size: size, isSplittable: isSplittable, etag: isStrong ? "\"1\"" : "W/\"1\"") == isHeld,
                "learning was not as expected")
        case 8..<16 where lease.kind == .resolve:
            let origin = chance(70) ? "fresh" : "a"
            log("resolved \(what) to \(origin)")
            model.resolve(lease, by: session, to: origin)
            try await worker.resolve(lease, to: origin)
        case 8..<13:
            // The holder need not have heard of the part given back.
            let end: Int64? = chunk?.hasRegained == true && chance(50) ? offset : nil
            log("done \(what)\(end.map { " at \($0)" } ?? "")")
            model.done(lease, by: session, at: end)
            try await worker.done(lease, at: end)
        case 13..<16 where lease.kind != .purge:
            let size = task?.size.flatMap { task?.isPlanned == true ? $0 : nil } ?? max(offset, chunk?.durable ?? 0)
            log("finished \(what) of \(size)")
            model.finish(lease, by: session, size: size)
            try await worker.finish(lease, size: size)
        case 16:
            log("released \(what) at \(offset)")
            model.release(lease, by: session, at: offset)
            try await worker.release(lease, at: offset)
        case 17..<19:
            var failure = failure(of: lease)
            failure.offset = offset
            let after = failure.parksOrigin ? " and again after 100 s" : ""
            log("failed \(what) at \(offset): \(failure.kind.rawValue) \(failure.status.map { "\($0)" } ?? "")\(after)")
            model.fail(lease, by: session, failure)
            try await worker.fail(
                lease, failure.kind, at: offset, retryAfter: failure.parksOrigin ? 100 : nil,
                status: failure.status.map(Int32.init))
        default:
            let rung = Rung.allCases.randomElement(using: &random) ?? .whole
            log("restart \(what) on \(rung)")
            model.restart(lease, on: rung, by: session)
            try await worker.restart(lease, on: rung)
        }
    }

    /// Chooses the report. In histories about sources, tasks are planned soon and mirrors fail often; in those about groups, files
    /// are soon put in place, or fail to be.
    private mutating func reportChoice(_ lease: GrantedLease, _ task: StoreModel.Task?) -> Int {
        let choice = Int.random(in: 0..<20, using: &random)
        guard let task else { return choice }
        switch (theme, lease.kind) {
        case (_, .finalize) where task.isPausing && chance(50): return 17
        case (.sources, .fetch) where !task.isPlanned && chance(70): return 4
        case (.sources, .fetch): return lease.isOtherMirror && chance(30) ? 17 : choice
        case (.groups, .fetch) where chance(50): return task.isPlanned ? 8 : chance(50) ? 4 : 13
        case (.groups, .finalize) where chance(80): return task.isPausing ? 17 : 13
        case (.many, _), (.few, _), (.sources, _), (.groups, _): return choice
        }
    }

    /// Shrinks a chunk one or more times, and then lets requests for the tail fail.
    mutating func cutAndRefuse() async throws {
        let held = granted.filter { $0.kind == .fetch && model.find($0, by: $0.session) != nil }
        guard let lease = held.randomElement(using: &random) else { return }
        let worker = TestWorker(fixture: fixture, session: lease.session)
        for _ in 0..<Int.random(in: 1...3, using: &random) {
            guard let found = model.find(lease, by: lease.session), let chunk = model[found.place]?.chunks[found.index],
                let last = chunk.last, last > chunk.first
            else { return }
            let end = Int64.random(in: chunk.first...last, using: &random)
            log("shrunk \(lease.path) \(lease.name.chunk).\(lease.name.epoch) to \(end)")
            let isNearer = model.shrink(lease, by: lease.session, to: end)
            expect(try await worker.shrink(lease, to: end) == (isNearer ? .agreed : .kept), "the end is another one")
        }
        if chance(80) { try await claim() }
        let pieces = granted.filter {
            $0.task == lease.task && $0.reach != nil && model.find($0, by: $0.session) != nil
        }
        for piece in pieces.shuffled(using: &random) where chance(70) {
            var failure = failure(of: piece)
            failure.offset = piece.start
            if chance(80) { failure.parksOrigin = false }
            let what = "\(piece.path) \(piece.name.chunk).\(piece.name.epoch)"
            log("failed \(what): \(failure.kind.rawValue) \(failure.status.map { "\($0)" } ?? "")")
            model.fail(piece, by: piece.session, failure)
            try await TestWorker(fixture: fixture, session: piece.session).fail(
                piece, failure.kind, at: failure.offset, retryAfter: failure.parksOrigin ? 100 : nil,
                status: failure.status.map(Int32.init))
        }
    }

    /// Refusals come in bursts: an origin has too many requests at once, or all URLs of a task expire. Some refusals come late.
    mutating func refuseBurst() async throws {
        let fetches = granted.filter { $0.kind == .fetch && model.find($0, by: $0.session) != nil }
        guard let first = fetches.randomElement(using: &random) else { return }
        let isLimit = chance(50)
        let origin = model.origin(of: first)
        let (kind, status): (FailureKind, Int) =
            isLimit ? (.httpStatus(429), 429) : chance(50) ? (.authentication, 401) : (.notFound, 410)
        for lease in fetches where isLimit ? model.origin(of: lease) == origin : lease.task == first.task {
            guard model.find(lease, by: lease.session) != nil, chance(70) else { continue }
            log("refused \(lease.path) \(lease.name.chunk).\(lease.name.epoch) by \(lease.session) with \(status)")
            let offset = lease.resume.offset
            model.fail(
                lease, by: lease.session,
                StoreModel.Failure(kind: kind, status: status, offset: offset, parksOrigin: false))
            try await TestWorker(fixture: fixture, session: lease.session).fail(
                lease, kind, at: offset, status: Int32(status))
        }
    }

    /// Fails a task in the same way until it has failed, or until nothing of it is leased any more: a resolver that does not
    /// answer, content whose digest is always wrong, mirrors that all differ.
    mutating func failAgainAndAgain() async throws {
        let held = granted.filter { $0.kind != .purge && model.isHeld($0, by: $0.session) }
        let questions = held.filter { $0.kind == .resolve }
        guard var lease = (questions.isEmpty ? held : questions).randomElement(using: &random) else { return }
        let kind: FailureKind = lease.kind == .resolve ? .timeout : chance(50) ? .digestMismatch : .changed
        for _ in 0..<6 {
            let offset = lease.resume.offset
            log("failed \(lease.path) \(lease.name.chunk).\(lease.name.epoch) at \(offset): \(kind.rawValue)")
            model.fail(
                lease, by: lease.session,
                StoreModel.Failure(kind: kind, status: nil, offset: offset, parksOrigin: false))
            try await TestWorker(fixture: fixture, session: lease.session).fail(lease, kind, at: offset)
            try await passTime()
            try await claim()
            let task = lease.task
            let next = granted.filter { $0.task == task && $0.kind != .purge && model.isHeld($0, by: $0.session) }
            let alike = next.filter { ($0.kind == .resolve) == (kind == .timeout) }
            guard let found = alike.first(where: \.isOtherMirror) ?? alike.first else { return }
            lease = found
        }
    }

    /// Whether the lease's chunk was given back a part of the file.
    private func hasRegained(_ lease: GrantedLease) -> Bool {
        guard let found = model.find(lease, by: lease.session) else { return false }
        return model[found.place]?.chunks[found.index].hasRegained ?? false
    }

    /// Whether a file is being put in place whose task will be paused unless that succeeds.
    private func isPausing(_ lease: GrantedLease) -> Bool {
        guard lease.kind == .finalize, let found = model.find(lease, by: lease.session) else { return false }
        return model[found.place]?.isPausing ?? false
    }

    /// A random failure that the lease's kind allows.
    private mutating func failure(of lease: GrantedLease) -> StoreModel.Failure {
        let all: [(FailureKind, Int?)] = [
            (.network, nil), (.timeout, nil), (.notFound, 404), (.storage, nil), (.changed, nil), (.storageFull, nil),
            (.digestMismatch, nil), (.httpStatus(429), 429), (.httpStatus(503), 503), (.httpStatus(403), 403),
            (.authentication, 401), (.notFound, 410), (.tls, nil), (.tooSlow, nil),
        ]
        let small: [(FailureKind, Int?)] = [(.notFound, 404), (.storage, nil)]
        let questions: [(FailureKind, Int?)] = [(.timeout, nil), (.authentication, 401), (.storageFull, nil)]
        let wholes: [(FailureKind, Int?)] = [(.digestMismatch, nil), (.changed, nil)]
        let isWhole = lease.kind == .finalize && (theme == .groups || isPausing(lease))
        let kinds = lease.kind == .resolve ? questions : isWhole ? wholes : theme == .few ? small + all : all
        let mirrors: [(FailureKind, Int?)] = [(.changed, nil), (.timeout, nil)]
        let isMirror = lease.isOtherMirror && chance(40)
        let (kind, status) = (isMirror ? mirrors : kinds).randomElement(using: &random) ?? (.network, nil)
        return StoreModel.Failure(kind: kind, status: status, offset: 0, parksOrigin: chance(25))
    }
}
