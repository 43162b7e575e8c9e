import MusterCore
import MusterPostgres
import MusterStore

extension History {
    /// A report about a lease that is held, or was once; now and then by somebody who never had it.
    mutating func report() async throws {
        let held = granted.filter { model.find($0, by: $0.session) != nil || model.purges[$0.task]?.lease != nil }
        let holders = Set(held.map(\.name.chunk))
        // Late reports matter most when somebody else is at the chunk by now.
        let late = granted.filter { holders.contains($0.name.chunk) && model.find($0, by: $0.session) == nil }
        let choice = chance(15) ? granted : chance(20) ? late : held
        guard let lease = choice.randomElement(using: &random) else { return }
        let session = chance(95) ? lease.session : sessions.randomElement(using: &random) ?? lease.session
        let worker = TestWorker(fixture: fixture, session: session)
        let found = model.find(lease, by: session)
        let task = found.flatMap { model[$0.place] }
        let chunk = found.flatMap { model[$0.place]?.chunks[$0.index] }
        let first = chunk?.first ?? lease.start
        let offset = Int64.random(in: first...(chunk?.last ?? first + 150), using: &random)
        let what = "\(lease.path) \(lease.name.chunk).\(lease.name.epoch) by \(session)"

        switch Int.random(in: 0..<20, using: &random) {
        case 0..<4:
            let offset = chance(90) ? offset : offset + 50
            log("progress \(what) to \(offset)")
            let isHeld = model.progress(lease, by: session, to: offset)
            expect(
                try await worker.progress(lease, to: offset) == isHeld, "the progress was \(isHeld ? "lost" : "taken")")
        case 4..<8 where lease.kind == .fetch:
            let durable = chunk?.durable ?? 0
            let isSplittable = chunk?.last != nil && task?.isStream == false && chance(85)
            let size: Int64? =
                isSplittable || chance(50) ? max(durable, Int64.random(in: 0...350, using: &random)) : nil
            log("learned of \(what): \(size.map { "\($0)" } ?? "?"), \(isSplittable ? "ranges" : "a stream")")
            let isHeld = model.learn(lease, by: session, size: size, isSplittable: isSplittable)
            expect(
                try await worker.learn(lease, size: size, isSplittable: isSplittable) == isHeld,
                "learning was not as expected")
        case 8..<13:
            log("done \(what)")
            model.done(lease, by: session)
            try await worker.done(lease)
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
            let all: [FailureKind] = [.network, .timeout, .notFound, .storage, .changed, .storageFull, .digestMismatch]
            let kinds = isSmall ? [.notFound, .storage] + all : all
            let kind = kinds.randomElement(using: &random) ?? .network
            let retryAfter: Int64? = chance(25) ? 100 : nil
            log("failed \(what) at \(offset): \(kind.rawValue), again after \(retryAfter.map { "\($0)" } ?? "-")")
            model.fail(lease, by: session, kind, at: offset, parksOrigin: retryAfter != nil)
            try await worker.fail(lease, kind, at: offset, retryAfter: retryAfter)
        default:
            log("restart \(what)")
            model.restart(lease, by: session)
            try await worker.restart(lease)
        }
    }
}
