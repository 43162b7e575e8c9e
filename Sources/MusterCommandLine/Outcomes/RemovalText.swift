import MusterAPI

extension RemovalDocument {
    /// What is still to be done, in words; `nil` when everything is done.
    var note: String? {
        if pending == true { return "it is gone as soon as nothing else that takes long has it" }
        guard files > 0 else { return nil }
        let what =
            files == 1 ? "1 finished file is still to be deleted" : "\(files) finished files are still to be deleted"
        return what + (obstacle ?? "")
    }

    /// What keeps files from being deleted, as the end of a sentence; `nil` if no obstacle is known.
    var obstacle: String? {
        guard pending != true, files > 0 else { return nil }
        guard workersReaching > 0 else { return ", and no live worker reaches the sink \(sink ?? "")" }
        return failure.map { failure in
            let which = failure.files == files ? "" : ", \(failure.files) of which can't be"
            return "\(which): \(failure.detail); that is tried again every 10 s"
        }
    }

    /// The name of the state of a group that is being removed.
    static let state = "removing"

    /// Facts about it as `name: value` lines.
    var facts: [(String, String)] {
        [("group", group), ("state", Self.state), ("sink", sink ?? "-"), ("files left", "\(files)")]
            + (note.map { [("note", $0)] } ?? [])
    }
}
