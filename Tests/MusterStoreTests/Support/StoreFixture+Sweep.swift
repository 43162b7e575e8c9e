import MusterStore

/// The combined results of the sweeps over groups.
struct SweptGroups: Sendable, Hashable {
    let released: Int64
    let expired: Int64
    let failedTasks: Int64
    let recalled: Int64
}

extension Store {
    /// Sweeps until no verb is left to be applied or finished.
    func sweepAllWishes() async throws { while try await sweepWishes() > 0 {} }

    /// The sweeps over groups, one after the other: deadlines, chains, windows.
    func sweepGroups(limit: Int32 = 1_000) async throws -> SweptGroups {
        let expired = try await expireGroups(limit: limit)
        return SweptGroups(
            released: try await releaseGroups(limit: limit), expired: expired.groups, failedTasks: expired.failedTasks,
            recalled: try await recallLeases(limit: limit))
    }
}
