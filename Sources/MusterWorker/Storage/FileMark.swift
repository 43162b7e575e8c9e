import Crypto
import Glibc
import MusterCore

/// The owner of a file that Muster put in place, as it is written into the file itself (adr/0014): an extended attribute,
/// whose name is derived from the task's path, since one inode can stand at several paths.
///
/// A purge needs it to tell the file of a task that was cancelled at that very moment from any other file that may stand there.
struct FileMark: Hashable, Sendable {
    /// The task that a file belongs to.
    struct Owner: Hashable, Sendable {
        /// The database that the task is in; task numbers are unique only within it.
        var installation: String
        /// The task.
        var task: TaskID
    }

    /// What shows whether a file was written to since it was marked.
    struct State: Hashable, Sendable {
        /// Its size in bytes.
        var size: Int64
        /// When its content was last changed, in nanoseconds since 1970.
        var modified: Int64

        /// The current state of a file.
        init(_ status: FileStatus) {
            size = status.size
            modified = status.modified &* 1_000_000_000 &+ status.modifiedNanoseconds
        }

        /// The state that a mark records.
        init(size: Int64, modified: Int64) {
            self.size = size
            self.modified = modified
        }
    }

    /// The task that the file belongs to.
    var owner: Owner
    /// The task's content version in the file.
    var version: Int32
    /// Shows which representation the file has, as far as the origin told: 64 bits of the SHA-256 of its validators, in hexadecimal. Empty without any.
    var validators = ""
    /// Whether the file stood there already, or replaced one that did. It is then not deleted with the task, unless that
    /// is asked for.
    var isAdopted = false
    /// The state of the file when it was marked; `nil` before that.
    var state: State?
    /// Whether another installation counts on the file by now.
    var isCountedOn = false

    /// The most bytes that a mark has; a longer attribute is not Muster's.
    private static let limit = 256

    /// The mark of a file under the path of its task, whose content is `representation` as far as that is known.
    init(owner: Owner, version: Int32, representation: Representation = Representation(), isAdopted: Bool = false) {
        self.owner = owner
        self.version = version
        self.isAdopted = isAdopted
        guard representation.hasValidator else { return }
        validators = Self.short([representation.etag ?? "", representation.lastModified ?? ""].joined(separator: "\n"))
    }

    /// Reads a mark as `text` writes it; `nil` for anything else.
    init?(_ text: String) {
        let fields = text.split(separator: "/", omittingEmptySubsequences: false)
        guard fields.count == 6 || fields.count == 7 && fields[6] == "adopted", let task = Int64(fields[1]),
            let version = Int32(fields[2]), let size = Int64(fields[3]), let modified = Int64(fields[4])
        else { return nil }
        self.init(
            owner: Owner(installation: String(fields[0]), task: TaskID(task)),
            version: version,
            isAdopted: fields.count == 7
        )
        validators = String(fields[5])
        let known = State(size: size, modified: modified)
        // Refuses spellings such as "+1" or "007".
        guard self.text(known) == text else { return nil }
        state = known
    }

    /// `<installation>/<task>/<version>/<size>/<nanoseconds>/<validators>`, followed by `/adopted` if it is adopted.
    func text(_ state: State) -> String {
        "\(owner.installation)/\(owner.task)/\(version)/\(state.size)/\(state.modified)/\(validators)"
            + (isAdopted ? "/adopted" : "")
    }

    /// Whether the owner itself put the file there, the file is unchanged since, and no other installation counts on it.
    func isIntact(_ status: FileStatus) -> Bool { !isAdopted && !isCountedOn && state == State(status) }

    /// Whether the owner put this version of its file there, or counted it, and the file is unchanged since.
    func isOf(_ other: FileMark, _ status: FileStatus) -> Bool {
        owner == other.owner && version == other.version && state == State(status)
    }

    /// The attribute's name: 64 bits of the path's SHA-256, since attribute names are short.
    static func attribute(of path: DestinationPath) -> String { "user.muster." + short(path.string) }

    /// 64 bits of the SHA-256 of a text, in hexadecimal.
    private static func short(_ text: String) -> String {
        let digest = SHA256.hash(data: Array(text.utf8))
        return String(digest.prefix(8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }, radix: 16)
    }

    /// The mark of an open file; `nil` when there is none that can be read.
    static func read(_ file: Descriptor, path: DestinationPath) -> FileMark? {
        guard let bytes = try? file.attribute(attribute(of: path), limit: limit) else { return nil }
        var mark = FileMark(String(decoding: bytes, as: UTF8.self))
        mark?.isCountedOn = (try? file.attribute(attribute(ofCountersAt: path), limit: limit)) != nil
        return mark
    }

    /// The name of the attribute in which another installation records that it counts on the file; it holds the UUID of
    /// that installation.
    private static func attribute(ofCountersAt path: DestinationPath) -> String { attribute(of: path) + ".counted" }

    /// Whether an open file is marked as another installation's.
    func isStrangers(_ file: Descriptor, path: DestinationPath) -> Bool {
        guard let found = Self.read(file, path: path) else { return false }
        return found.owner.installation != owner.installation
    }

    /// What became of a file that already stood at a path.
    enum Adoption: Hashable, Sendable {
        /// It stands there with a mark: as the owner's from now on, or as another installation's as before (I18), which
        /// leaves it alone from now on.
        case marked
        /// It does not stand there any more.
        case gone
        /// It is another task's, and can't be marked.
        case refused
    }

    /// Marks a file that stands at a path as the owner's from now on: as adopted, unless the owner itself put it there.
    /// Another process may be about to delete it as a remnant of another task. That process checks the mark after it has
    /// moved the file away from its path, so that after this call the file is either the owner's or gone.
    func adopt(
        _ file: Descriptor,
        _ identity: FileIdentity,
        at place: SinkPlace,
        path: DestinationPath
    ) throws(SystemError) -> Adoption {
        let found = Self.read(file, path: path)
        var mark = self
        mark.isAdopted = found?.owner != owner || found?.isAdopted == true
        let isStrangers = found.map { $0.owner.installation != owner.installation } ?? false
        mark.state = found?.state
        if isStrangers {
            // If the attribute can't be written because the file is another user's, the file counts as the task's all the same.
            let counter = Array(owner.installation.utf8)
            let isWritten = (try? file.setAttribute(Self.attribute(ofCountersAt: path), to: counter)) != nil
            if isWritten { try file.synchronize() }
        } else {
            guard found == mark || mark.write(to: file, path: path) || found == nil else { return .refused }
        }
        return try place.directory.status(of: place.name)?.identity == identity ? .marked : .gone
    }

    /// Writes the mark into an open file. Returns whether it is there now: not every file system has attributes, and not
    /// every file is ours.
    func write(to file: Descriptor, path: DestinationPath) -> Bool {
        guard let status = try? file.status() else { return false }
        return (try? file.setAttribute(Self.attribute(of: path), to: Array(text(State(status)).utf8))) != nil
    }
}
