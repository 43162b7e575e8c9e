import MusterCore

/// The name of a part in `.muster/<installation>/parts`, `<task>.<version>.part` (`docs/protocol.md`, "Files"): the bytes of one content version
/// as they arrive.
struct PartName: Hashable, Sendable {
    /// The task whose file it is.
    let task: TaskID
    /// The content version whose bytes it holds.
    let version: Int32

    /// The part of a content version.
    init(_ task: TaskID, version: Int32) {
        self.task = task
        self.version = version
    }

    /// Parses a name; `nil` if Muster would not have written it exactly so.
    init?(_ name: String) {
        let fields = name.split(separator: ".", omittingEmptySubsequences: false)
        guard fields.count == 3, let task = Int64(fields[0]), let version = Int32(fields[1]) else {
            return nil
        }
        self.init(TaskID(task), version: version)
        // Refuses spellings such as "+1" or "007" that would read the same but be other files.
        guard string == name else { return nil }
    }

    /// The name in the directory.
    var string: String { "\(task).\(version).part" }
}

/// The name of a file that is about to be put in place.
enum CandidateName: Hashable, Sendable {
    /// A part, which is among the parts until it is staged.
    case part(PartName)
    /// A file that has only ever been in the session's own directory: a part that no other session knows of, or
    /// `<epoch>.copy`, the fresh inode that the lease `epoch` makes of a fenced part (I8) or of another task's file.
    /// Revoking the session deletes it.
    case own(String)

    /// The name in the directory.
    var string: String {
        switch self {
        case .part(let name): name.string
        case .own(let name): name
        }
    }
}
