import MusterAPI

extension RemovalDocument {
    /// What is still to be done, for people; nothing when all is.
    var note: String? {
        if pending == true { return "it is gone as soon as nothing else that takes long has it" }
        guard files > 0 else { return nil }
        let what =
            files == 1 ? "1 finished file is still to be deleted" : "\(files) finished files are still to be deleted"
        guard workersReaching == 0 else { return what }
        return "\(what), and no live worker reaches the sink \(sink ?? "")"
    }

    /// The name of the state that it is in, as groups have theirs.
    static let state = "removing"

    /// Facts about it as `name: value` lines.
    var facts: [(String, String)] {
        [("group", group), ("state", Self.state), ("sink", sink ?? "-"), ("files left", "\(files)")]
            + (note.map { [("note", $0)] } ?? [])
    }
}
