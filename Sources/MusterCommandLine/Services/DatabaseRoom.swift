import MusterEmbeddedPostgres
import Synchronization

/// Whether the disk of a private database has room for it. The service of the database finds out; each command and answer that has to
/// say why the database does not work takes it from here.
final class DatabaseRoom: Sendable {
    /// What is known.
    private struct State {
        /// What is missing.
        var lack: EmbeddedPostgresError?
        /// Bytes of those which are free that it is to have.
        var owed: Int64 = 0
        /// Whether somebody was told.
        var isTold = false
    }

    private let state = Mutex(State())
    private let tellsOfRunning: Bool
    private let onFull: OnFull
    private let remark: @Sendable (String) -> Void

    /// Room of which nothing bad is known.
    ///
    /// - Parameters:
    ///   - tellsOfRunning: whether it is told here too that a server which runs lacks room: `get` looks at the same disk for its files, and
    ///     tells what these lack.
    ///   - onFull: what happens when there is none.
    ///   - remark: told what a person should know.
    init(tellsOfRunning: Bool, onFull: OnFull, remark: @escaping @Sendable (String) -> Void) {
        self.tellsOfRunning = tellsOfRunning
        self.onFull = onFull
        self.remark = remark
    }

    /// What is missing; `nil` while there is room.
    var lack: EmbeddedPostgresError? { state.withLock { $0.lack } }

    /// Bytes of those which are free on its disk that are no room for files: the database is to have them.
    var owedBytes: Int64 { state.withLock { $0.owed } }

    /// What is missing, and that this is waited for, if it is.
    var trouble: String? { lack.map { "\($0)" + (onFull == .wait ? "; it goes on by itself when there is room" : "") } }

    /// Takes what was found, and tells what is new about it.
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
