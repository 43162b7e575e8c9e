/// What became of the file of a task that had succeeded, which a purge was to delete (adr/0014).
public enum RemovedFile: String, Sendable, Codable, CaseIterable {
    /// It is gone.
    case deleted
    /// Something else stands at its path by now, and stays.
    case changed
    /// There was none any more.
    case missing
}
