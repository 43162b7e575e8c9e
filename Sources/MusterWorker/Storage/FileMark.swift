import Crypto
import Glibc
import MusterCore

/// Whose a file is that Muster put in place, as it is written into the file itself (adr/0014): an extended attribute, whose name is
/// derived from the task's path, since one inode can stand at several paths.
///
/// It is what a purge needs to tell the file of a task that was cancelled in the very moment from whatever else may stand there.
struct FileMark: Hashable, Sendable {
    /// The task that a file belongs to.
    struct Owner: Hashable, Sendable {
        /// The database that the task is in; numbers of tasks say nothing beyond it.
        var installation: String
        /// The task.
        var task: TaskID
    }

    /// What shows that nobody has written to a file since it was marked.
    struct State: Hashable, Sendable {
        /// Its size in bytes.
        var size: Int64
        /// When its content was last changed, in nanoseconds since 1970.
        var modified: Int64

        /// What a file is like now.
        init(_ status: FileStatus) {
            size = status.size
            modified = status.modified &* 1_000_000_000 &+ status.modifiedNanoseconds
        }

        /// What a mark says.
        init(size: Int64, modified: Int64) {
            self.size = size
            self.modified = modified
        }
    }

    /// Whose it is.
    var owner: Owner
    /// The content version of the task that it is.
    var version: Int32
    /// Whether it stood there already, so that it is not the task's to delete unless it is asked to.
    var isAdopted = false
    /// What the file was like when it was marked; `nil` of one that is still to be.
    var state: State?
    /// Whether another installation counts on the file since.
    var isCountedOn = false

    /// The most bytes that a mark has; what is longer is none of ours.
    private static let limit = 256

    /// The mark of a file under the path of its task.
    init(owner: Owner, version: Int32, isAdopted: Bool = false) {
        self.owner = owner
        self.version = version
        self.isAdopted = isAdopted
    }

    /// Reads a mark as `text` writes it; `nil` for anything else.
    init?(_ text: String) {
        let fields = text.split(separator: "/", omittingEmptySubsequences: false)
        guard fields.count == 5 || fields.count == 6 && fields[5] == "adopted", let task = Int64(fields[1]),
            let version = Int32(fields[2]), let size = Int64(fields[3]), let modified = Int64(fields[4])
        else { return nil }
        self.init(
            owner: Owner(installation: String(fields[0]), task: TaskID(task)),
            version: version,
            isAdopted: fields.count == 6
        )
        state = State(size: size, modified: modified)
    }

    /// `<installation>/<task>/<version>/<size>/<nanoseconds>`, with `/adopted` behind it if it is.
    func text(_ state: State) -> String {
        "\(owner.installation)/\(owner.task)/\(version)/\(state.size)/\(state.modified)" + (isAdopted ? "/adopted" : "")
    }

    /// Whether the owner put the file there itself, and nobody has written to it or counts on it since.
    func isIntact(_ status: FileStatus) -> Bool { !isAdopted && !isCountedOn && state == State(status) }

    /// The attribute's name: 64 bits of the path's SHA-256, since names are short.
    static func attribute(of path: DestinationPath) -> String {
        let digest = SHA256.hash(data: Array(path.string.utf8))
        return "user.muster." + String(digest.prefix(8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }, radix: 16)
    }

    /// The mark of an open file; `nil` when there is none that can be read.
    static func read(_ file: Descriptor, path: DestinationPath) -> FileMark? {
        guard let bytes = try? file.attribute(attribute(of: path), limit: limit) else { return nil }
        var mark = FileMark(String(decoding: bytes, as: UTF8.self))
        mark?.isCountedOn = (try? file.attribute(attribute(ofCountersAt: path), limit: limit)) != nil
        return mark
    }

    /// The name of the attribute with which another installation says that it has counted the file: it holds that one's UUID.
    private static func attribute(ofCountersAt path: DestinationPath) -> String { attribute(of: path) + ".counted" }

    /// Whether an open file is marked as another installation's.
    func isStrangers(_ file: Descriptor, path: DestinationPath) -> Bool {
        guard let found = Self.read(file, path: path) else { return false }
        return found.owner.installation != owner.installation
    }

    /// What became of a file that stood at a path already.
    enum Adoption: Hashable, Sendable {
        /// It stands there, and says whose it is: ours from now on, or another installation's as before (I18), which leaves it alone from now on.
        case marked
        /// It does not stand there any more.
        case gone
        /// It is another task's, and can't be marked.
        case refused
    }

    /// Marks a file that stands at a path as the owner's from now on: as adopted, unless the owner itself put it there. Somebody may be
    /// about to delete it, as what is left of another task: that process looks at the mark after it has taken the file out of its place, so that
    /// afterwards it either is the owner's or is gone.
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
            // Where that can't be written, since the file is another user's, it is counted all the same.
            let counter = Array(owner.installation.utf8)
            let isWritten = (try? file.setAttribute(Self.attribute(ofCountersAt: path), to: counter)) != nil
            if isWritten { try file.synchronize() }
        } else {
            guard found == mark || mark.write(to: file, path: path) || found == nil else { return .refused }
        }
        return try place.directory.status(of: place.name)?.identity == identity ? .marked : .gone
    }

    /// Writes it into an open file. Returns whether it is there now: not every file system has attributes, and not every file is ours.
    func write(to file: Descriptor, path: DestinationPath) -> Bool {
        guard let status = try? file.status() else { return false }
        return (try? file.setAttribute(Self.attribute(of: path), to: Array(text(State(status)).utf8))) != nil
    }
}
