import MusterCore
import MusterPostgres
import MusterStore

/// Races between a holder and its double, steered so that both meet at the right moment.
extension StragglerHistory {
    /// A chunk and its double.
    struct Pair {
        /// The indexes in `workers` of the holder and the helper.
        let holder: Int
        let helper: Int
        let original: GrantedLease
        let double: GrantedLease
        /// How many bytes the double is ahead; negative if it is behind.
        let lead: Int64
        let isFenced: Bool
    }

    /// Lets the holder or the helper of a random pair make progress, fail or finish. Without a pair, a worker asks to help.
    mutating func race(otherwise index: Int) async throws {
        guard let pair = try await pairs().randomElement(using: &random) else { return try await help(index) }
        let holder = workers[pair.holder].worker
        let helper = workers[pair.helper].worker
        let lease = pair.original.name
        let offset = Int64.random(in: pair.double.resume.offset...(pair.double.end ?? .max), using: &random)
        // A task is fenced only once, and nearly every step fences it: so the double often wins before that.
        switch !pair.isFenced && Int.random(in: 0..<3, using: &random) == 0 ? 7 : Int.random(in: 0..<20, using: &random)
        {
        case 0..<4: try await holder.progress(pair.original, to: offset)
        case 4..<7: try await helper.progress(pair.double, to: offset)
        case 7:
            if !pair.isFenced { seen.note(.won) }
            if pair.lead > 0 { seen.note(.ahead) }
            try await helper.done(pair.double)
        case 8..<10:
            seen.note(.lost)
            if !pair.isFenced { seen.note(.takenBack) }
            try await holder.done(pair.original)
        case 10..<12:
            seen.note(.shrunkWithDouble)
            try await shrink(pair.original, to: offset, by: holder)
        case 12..<14:
            seen.note(.failed)
            if !pair.isFenced { seen.note(.takenBack) }
            try await holder.fail(pair.original, .storageFull, at: offset)
        case 14: try await helper.release(pair.double, at: offset)
        case 15: try await replace(pair.holder)
        case 16..<18:
            try await holder.progress(pair.original, to: offset)
            for pair in try await pairs() where pair.original.name == lease { noteReturn(of: pair) }
            try await holder.release(pair.original)
        default:
            // The holder does not know of the lease, since the answer was lost or it has restarted.
            noteReturn(of: pair)
            workers[pair.holder].leases.removeAll { $0.name == lease }
            let held = workers[pair.holder].leases.map(\.name)
            try await workers[pair.holder].worker.sync(settled: holder.sequence, held: held)
        }
    }

    /// Notes that the holder of a doubled chunk is about to be put back.
    mutating func noteReturn(of pair: Pair) {
        seen.note(pair.lead < 0 ? .fellBehind : .tookOver)
        if pair.lead > 0 { seen.note(.ahead) }
        if pair.lead < 0, !pair.isFenced { seen.note(.takenBack) }
    }

    /// The chunks that are doubled now.
    func pairs() async throws -> [Pair] {
        let rows = try await fixture.pool.query(
            """
            SELECT o.epoch, d.epoch, d.durable - o.durable, t.fenced
            FROM leases d JOIN leases o ON o.chunk_id = d.doubles JOIN tasks t ON t.id = d.task_id ORDER BY d.chunk_id
            """)
        return try rows.compactMap { row in
            guard let original = try holding(row.decode(at: 0)), let double = try holding(row.decode(at: 1)) else {
                return nil
            }
            return Pair(
                holder: original.place, helper: double.place, original: original.lease, double: double.lease,
                lead: try row.decode(at: 2), isFenced: try row.decode(at: 3))
        }
    }

    /// Fails a piece that was cut off a chunk. Without one, a tail is cut off and leased.
    mutating func refuse(_ index: Int) async throws {
        let rows = try await fixture.pool.query(
            """
            SELECT l.epoch, l.durable > l.first, EXISTS (
                SELECT 1 FROM leases h WHERE h.task_id = l.task_id AND h.kind = 'fetch' AND h.last = l.first AND h.durable < h.last AND h.reach >= l.last)
            FROM leases l WHERE l.kind = 'fetch' AND l.reach IS NOT NULL AND l.first > 0 AND l.attempts = 0
                AND NOT EXISTS (SELECT 1 FROM leases d WHERE d.doubles = l.chunk_id)
            ORDER BY l.chunk_id DESC
            """)
        for row in rows {
            guard let (place, lease) = try holding(row.decode(at: 0)) else { continue }
            let hasBytes: Bool = try row.decode(at: 1)
            if hasBytes { seen.note(.kept) } else if try row.decode(at: 2) { seen.note(.givenBack) }
            return try await workers[place].worker.fail(lease, .network)
        }
        guard let lease = workers[index].leases.last(where: { $0.kind == .fetch && $0.isPlanned }), let end = lease.end,
            end - lease.start > 2
        else { return }
        try await shrink(lease, to: end - 2, by: workers[index].worker)
        try await claim((index + 1) % workers.count)
        if Bool.random(using: &random),
            let tail = workers[(index + 1) % workers.count].leases.last(where: { $0.reach != nil })
        {
            try await workers[(index + 1) % workers.count].worker.progress(tail, to: tail.start + 1)
        }
    }

    /// The worker that holds the lease of an epoch, as an index.
    private func holding(_ epoch: Int64) -> (place: Int, lease: GrantedLease)? {
        for (place, entry) in workers.enumerated() {
            for lease in entry.leases where lease.name.epoch.rawValue == epoch { return (place, lease) }
        }
        return nil
    }
}
