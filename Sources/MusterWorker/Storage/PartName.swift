import MusterCore

/// The names of Muster's own files in `.muster/<installation>/parts` (`docs/protocol.md`, "Files").
enum PartName: Hashable, Sendable {
    /// `<task>.<version>.part`: the bytes of one content version as they arrive.
    case part(TaskID, version: Int32)
    /// `<task>.<version>.<epoch>.copy`: the fresh inode that the finalize lease `epoch` copies a fenced part to (I8).
    case copy(TaskID, version: Int32, epoch: LeaseEpoch)

    /// Reads a name; `nil` for anything that Muster would not have written exactly so.
    init?(_ name: String) {
        let fields = name.split(separator: ".", omittingEmptySubsequences: false)
        guard fields.count == 3 || fields.count == 4, let task = Int64(fields[0]), let version = Int32(fields[1]) else {
            return nil
        }
        switch (fields.count, fields.last) {
        case (3, "part"):
            self = .part(TaskID(task), version: version)
        case (4, "copy"):
            guard let epoch = Int64(fields[2]) else { return nil }
            self = .copy(TaskID(task), version: version, epoch: LeaseEpoch(epoch))
        default:
            return nil
        }
        // Refuses spellings such as "+1" or "007" that would read the same but be other files.
        guard string == name else { return nil }
    }

    /// The name in the directory.
    var string: String {
        switch self {
        case .part(let task, let version): "\(task).\(version).part"
        case .copy(let task, let version, let epoch): "\(task).\(version).\(epoch).copy"
        }
    }

    /// The task whose file it is.
    var task: TaskID {
        switch self {
        case .part(let task, _), .copy(let task, _, _): task
        }
    }

    /// The content version whose bytes it holds.
    var version: Int32 {
        switch self {
        case .part(_, let version), .copy(_, let version, _): version
        }
    }
}
