/// What a purge did with the file of a succeeded task that it was to delete (adr/0014).
public enum RemovedFile: String, Sendable, Codable, CaseIterable {
    /// The file was deleted.
    case deleted
    /// Something else stands at its path by now, and was kept.
    case changed
    /// No file stands at its path.
    case missing
}
