import MusterEmbeddedPostgres
import Synchronization

/// Whether the disk of a private database has room for it. The database's service finds out; commands and answers that say why the database
/// does not work read it here.
final class DatabaseRoom: Sendable {
    /// What is known.
    private struct State {
        /// What is missing.
        var lack: EmbeddedPostgresError?
        /// Free bytes that are reserved for the database.
        var owed: Int64 = 0
        /// Whether the lack was reported to the user.
        var isTold = false
    }

    private let state = Mutex(State())
    private let tellsOfRunning: Bool
    private let onFull: OnFull
    private let remark: @Sendable (String) -> Void

    /// A state without a known lack of room.
    ///
    /// - Parameters:
    ///   - tellsOfRunning: whether a lack of room is reported here while the server runs too: `get` watches the same disk for its files,
    ///     and reports what they lack.
    ///   - onFull: what happens when there is none.
    ///   - remark: receives messages for the user.
    init(tellsOfRunning: Bool, onFull: OnFull, remark: @escaping @Sendable (String) -> Void) {
        self.tellsOfRunning = tellsOfRunning
        self.onFull = onFull
        self.remark = remark
    }

    /// What is missing; `nil` while there is room.
    var lack: EmbeddedPostgresError? { state.withLock { $0.lack } }

    /// Free bytes on its disk that are reserved for the database, and are no room for files.
    var owedBytes: Int64 { state.withLock { $0.owed } }

    /// What is missing, if anything, and whether the database waits for it.
    var trouble: String? { lack.map { "\($0)" + (onFull == .wait ? "; it goes on by itself when there is room" : "") } }

    /// Records what was found, and reports what is new about it.
    func found(_ lack: EmbeddedPostgresError?, owed: Int64 = 0, isRunning: Bool) {
        let news: String? = state.withLock { state in
            (state.lack, state.owed) = (lack, owed)
            guard let lack else {
                defer { state.isTold = false }
                return state.isTold ? "there is room again; going on" : nil
            }
            guard !state.isTold, tellsOfRunning || !isRunning else { return nil }
            state.isTold = true
            return "\(lack); waiting for room: make some, and it goes on by itself"
        }
        if let news { remark(news) }
    }
}
