/// Something that happens in a history at a time: a fault, or a request of a client.
struct Fault: CustomStringConvertible {
    /// What happens. Workers and coordinators are numbers; times are milliseconds.
    enum Kind {
        /// A process is killed, and started again after a time (F1, F3).
        case killWorker(Int, away: Int64)
        case killCoordinator(Int, away: Int64)
        /// A process is stopped for a time (F2, F4).
        case stopWorker(Int, time: Int64)
        case stopCoordinator(Int, time: Int64)
        /// Something happens at one of the next calls of a worker to its disk (F1, F2, F9).
        case call(Int, after: Int64, ProcessDisk.CallFault)
        /// Messages in one direction are lost for a time (F7).
        case cut(fromWorker: Bool, Int, Int, time: Int64)
        /// Messages are lost and repeated for a time (F7).
        case disturb(losses: Int64, repetitions: Int64, time: Int64)
        /// The database fails for a coordinator for a time (F5, F6, F12).
        case weather(Int, SimulatedStore.Weather, time: Int64)
        /// A long transaction has a group's lock for a time.
        case lock(String, time: Int64)
        /// An origin misbehaves for a time (F10).
        case mood(Int, SimulatedOrigin.Mood, time: Int64)
        /// A file is another one from now on.
        case changeFile(Int)
        /// The disk has so many bytes left for a time, is read-only for a time, or fails to sync so often (F9).
        case full(left: Int64, time: Int64)
        case readOnly(time: Int64)
        case failSyncs(Int)
        /// A worker may open few files for a time (F22).
        case descriptors(Int, limit: Int, time: Int64)
        /// Power is lost; all processes are killed and started again (F20).
        case losePower(away: Int64)
        /// Clients (F17).
        case add(Int)
        /// A client of the other installation (I18).
        case addStranger(Int)
        case verb(Verb, String, [String])
    }

    /// What clients ask for.
    enum Verb: String, CaseIterable {
        case pause, resume, cancel, retry, remove
    }

    /// When it happens, in milliseconds from the start.
    let at: Int64
    let kind: Kind

    var description: String { "\(at) ms: \(kind)" }
}
