import MusterPostgres

/// Two live processes that call themselves the same. A worker that was restarted is none of them: the session of its former
/// process stays until it expires, but is not heard of any more.
enum SharedName {
    /// Whether another process has the worker's name in a session `s`: both sessions live, and both were heard from for longer than
    /// a sync may be on its way since the later of them was opened.
    static let isShared: SQL = """
        EXISTS (
            SELECT FROM sessions n WHERE n.worker = s.worker AND n.id <> s.id
                AND s.expires_at > statement_timestamp() AND n.expires_at > statement_timestamp()
                AND least(s.seen_at, n.seen_at) > greatest(s.opened_at, n.opened_at) + interval '5 s')
        """
}

extension Store {
    /// The names that several live processes have, in order.
    public func sharedNames(limit: Int32 = 100) async throws -> [String] {
        try await query(
            """
            SELECT DISTINCT s.worker FROM sessions s WHERE \(SharedName.isShared) ORDER BY s.worker LIMIT \(limit)
            """
        ).map { try $0.decode("worker") }
    }
}
