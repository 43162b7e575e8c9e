import Glibc
public import SystemPackage

/// Why a private PostgreSQL could not be started.
///
/// Every case carries what the user needs to put it right: the path, the account, the output of the tool or the end of the
/// server's log.
public enum EmbeddedPostgresError: Error, Sendable, Hashable {
    /// No directory with both `initdb` and `postgres` was found. `searched` lists the places, in order.
    case serverBinariesNotFound(searched: [String])
    /// The directory that `MUSTER_PG_BINDIR` names lacks `missing`, or does not exist.
    case binaryDirectoryUnusable(path: FilePath, missing: String)
    /// The data directory was made by the major version `dataVersion`, for which no binaries were found. PostgreSQL
    /// cannot read another major version's files. `files` is what has to be removed to start with an empty database.
    case versionMismatch(dataDirectory: FilePath, files: [FilePath], dataVersion: String, found: [String])
    /// The process is root, PostgreSQL refuses to run as root, and there is neither an account `postgres` nor `nobody`.
    case noServerAccount
    /// The process is root, and none of the programs that run a server as another account works here.
    case noAccountSwitch(programs: [String])
    /// Another live process uses this state directory; `processID` is what its lock file says.
    case inUse(stateDirectory: FilePath, processID: Int32?)
    /// `start()` was called while the same object was starting or stopping.
    case busy
    /// Files belong to a user other than `account`, which the server runs as; `reason` says which. `files` is what has to
    /// belong to `account`.
    case foreignOwner(dataDirectory: FilePath, files: [FilePath], account: String, reason: String)
    /// The user that the server runs as, `account`, can't pass through `directories`, which are on the way to its data.
    case impassable(dataDirectory: FilePath, directories: [FilePath], account: String)
    /// The state directory points to a data directory outside of it that does not exist any more. Removing the
    /// pointer file starts with an empty database.
    case dataMissing(dataDirectory: FilePath, pointer: FilePath)
    /// The state directory is a copy of another one. The data is outside of both, and belongs to the original. Removing the
    /// pointer file starts with an empty database.
    case copied(stateDirectory: FilePath, original: FilePath, dataDirectory: FilePath, pointer: FilePath)
    /// The socket directory exists, but is not a private directory of the server's account.
    case socketDirectoryRefused(path: FilePath, reason: String)
    /// The place of the templates of new clusters is not this user's own directory, or other users can write to it.
    case templateRefused(path: FilePath)
    /// A program of PostgreSQL's failed; `output` is the end of what it printed.
    case toolFailed(tool: String, status: String, output: String)
    /// A signal ended the server before it was ready.
    case serverKilled
    /// The server ended before it was ready; `log` is the end of its log.
    case serverExited(status: String, log: String)
    /// The server can't use its data, as `reason` says. `files` is what has to be removed to start with an empty database.
    case damaged(dataDirectory: FilePath, files: [FilePath], reason: String)
    /// No user, not even root, may change files of the server, as `reason` says: they are in `files`.
    case immutable(dataDirectory: FilePath, files: [FilePath], reason: String)
    /// The data of a server that was in use was removed, or replaced by other data.
    case dataReplaced(dataDirectory: FilePath)
    /// The server was not ready within the limit; `log` is the end of its log.
    case notReady(limit: Duration, log: String)
    /// The server of an earlier process neither answers nor has ended after the limit; `log` is the end of its log.
    case predecessorRunning(EmbeddedPostgres.Predecessor, log: String)
    /// A program could not be started at all.
    case launchFailed(program: String, reason: String)
    /// The disk has no room for the server: `neededBytes` are needed at least, and `freeBytes` are free.
    case diskFull(directory: FilePath, neededBytes: Int64, freeBytes: Int64)
    /// The disk takes no more files: `neededFiles` have to be made at least, and `freeFiles` may be.
    case filesFull(directory: FilePath, neededFiles: Int64, freeFiles: Int64)
    /// Something else stands where something `needed` belongs.
    case misplaced(path: FilePath, needed: Needed)
    /// This user may not use a file of the cluster, which belongs to `owner`.
    case noAccess(path: FilePath, owner: String, isOwn: Bool)
    /// A file operation failed.
    case fileOperation(String, path: FilePath, errno: Errno)

    /// What belongs at a path.
    public enum Needed: String, Sendable, Hashable {
        /// A file, and no link.
        case file
        /// A directory.
        case directory
    }
}

extension EmbeddedPostgresError {
    /// Whether room on the disk is missing, so that the server may be started once there is some.
    public var isLackOfRoom: Bool {
        if case .diskFull = self { return true }
        if case .filesFull = self { return true }
        return false
    }

    /// Whether the files of the server are at fault, and can't be repaired.
    var isDamage: Bool {
        if case .damaged = self { true } else { false }
    }

    /// Whether the server was ended from outside, which says nothing about whether it can be started.
    public var isKill: Bool { self == .serverKilled }

    /// Whether a further start may succeed without the user's help: a server that was killed can be started again, and
    /// missing memory or processes may be there a moment later.
    public var mayPass: Bool {
        switch self {
        case .serverKilled, .serverExited, .notReady, .predecessorRunning, .toolFailed, .launchFailed, .fileOperation,
            .diskFull, .filesFull, .busy:
            true
        case .serverBinariesNotFound, .binaryDirectoryUnusable, .versionMismatch, .noServerAccount, .noAccountSwitch,
            .inUse, .foreignOwner, .impassable, .dataMissing, .copied, .socketDirectoryRefused, .templateRefused,
            .damaged,
            .immutable, .dataReplaced, .misplaced, .noAccess:
            false
        }
    }
}

extension EmbeddedPostgresError: CustomStringConvertible {
    /// What has happened, without the end of the server's log.
    public var brief: String {
        switch self {
        case .serverExited(let status, let log):
            "PostgreSQL ended before it was ready (\(ClusterTrouble.reason(in: log) ?? status))"
        case .notReady(let limit, _): "PostgreSQL was not ready within \(limit)"
        case .predecessorRunning(let predecessor, _):
            """
            \(predecessor) is still there after \(predecessor.limit), and neither answers nor ends, as one whose storage hangs: \
            \(predecessor.help)
            """
        default: description
        }
    }

    /// One paragraph for the user, which says what to do where something can be done.
    public var description: String {
        switch self {
        case .serverBinariesNotFound(let searched):
            """
            no PostgreSQL server was found (looked in: \(searched.joined(separator: ", "))). Install one, for example \
            with "apt-get install postgresql", or name the directory of its initdb and postgres in MUSTER_PG_BINDIR
            """
        case .binaryDirectoryUnusable(let path, let missing):
            "MUSTER_PG_BINDIR names \(path), where \(missing) is not an executable file"
        case .versionMismatch(let dataDirectory, let files, let dataVersion, let found):
            """
            the private database in \(dataDirectory) was made by PostgreSQL \(dataVersion), and here is another one: \
            \(found.joined(separator: ", ")). Install PostgreSQL \(dataVersion) ("apt-get install \
            postgresql-\(dataVersion)"), or name its directory in MUSTER_PG_BINDIR.
              \(Self.beginningAnew(files))
            """
        case .noServerAccount:
            "PostgreSQL does not run as root, and there is neither an account named postgres nor one named nobody"
        case .noAccountSwitch(let programs):
            """
            PostgreSQL does not run as root, and none of the programs that could run it as another account works: \
            \(programs.joined(separator: ", ")). Install util-linux, which has setpriv
            """
        case .inUse(let stateDirectory, let processID):
            "\(stateDirectory) is in use by another process (\(processID.map { "process \($0)" } ?? "unknown process"))"
        case .busy:
            "the server is being started or stopped at this moment"
        case .foreignOwner(let dataDirectory, let files, let account, let reason):
            """
            PostgreSQL may not use the private database in \(dataDirectory): \(reason)
              To give it back to the user that PostgreSQL runs as, which loses nothing, type (as root):
              chown -R \(account) \(Self.words(files)) && chmod -R u=rwX,go= \(Self.words(files))
            """
        case .impassable(let dataDirectory, let directories, let account):
            """
            PostgreSQL may not use the private database in \(dataDirectory): the user that it runs as, \(account), can't enter \
            \(directories.map(\.string).joined(separator: " and "))
              To let every user pass through, but not look inside, type:
              chmod a+x \(Self.words(directories))
            """
        case .dataMissing(let dataDirectory, let pointer):
            """
            the private database in \(dataDirectory) is not there any more: bring it back, if it was moved, or its disk is not mounted.
              \(Self.beginningAnew([pointer]))
            """
        case .copied(let stateDirectory, let original, let dataDirectory, let pointer):
            """
            \(stateDirectory) is a copy of \(original), whose private database in \(dataDirectory) was not copied along
              To give the copy one of its own, type the line below: files that are finished are safe and are taken over once their origins have \
            confirmed them, and unfinished ones begin anew.
              rm \(Self.words([pointer]))
            """
        case .socketDirectoryRefused(let path, let reason):
            "the socket directory \(path) is refused: \(reason)"
        case .templateRefused(let path):
            "templates of new clusters are not kept in \(path): others can write to it, or it is not this user's directory"
        case .toolFailed(let tool, let status, let output):
            "\(tool) failed (\(status)): \(ClusterTrouble.reason(in: output) ?? output)"
                + (output.contains("File too large")
                    ? "\n  The limit of a file's size is too small for PostgreSQL; to lift it, type: ulimit -f unlimited"
                    : "")
        case .serverKilled: "it was killed while it started, as by a system that is out of memory"
        case .serverExited(_, let log), .notReady(_, let log): "\(brief). The end of its log:\n\(log)"
        case .damaged(let dataDirectory, let files, let reason):
            """
            the private database in \(dataDirectory) is damaged: \(reason)
              \(Self.beginningAnew(files))
            """
        case .immutable(let dataDirectory, let files, let reason):
            """
            PostgreSQL can't change the private database in \(dataDirectory): \(reason)
              Nobody can while something there is immutable (lsattr shows an i or an a). To end that, which loses nothing, type (as root):
              chattr -R -ia \(Self.words(files))
            """
        case .dataReplaced(let dataDirectory):
            """
            the private database in \(dataDirectory) was removed or replaced while it was used, and what it knew is not there any more
              Nothing was done to finished files. Bring it back, if it was moved, and run the same command again, which goes on with what stands there
            """
        case .predecessorRunning(_, let log):
            "\(brief); then run the same command again. The end of its log:\n\(log)"
        case .launchFailed(let program, let reason):
            "\(program) could not be started: \(reason)"
        case .diskFull(let directory, let needed, let free):
            """
            the disk is full: the private database in \(directory) needs \(Self.mebibytes(needed)), and \
            \(free >> 20) MiB are free; \(Self.mebibytes(needed - free)) are missing
            """
        case .filesFull(let directory, let needed, let free):
            """
            the disk takes no more files: the private database in \(directory) needs \(needed), and \(free) can be made; \
            \(needed - free) are missing (df -i)
            """
        case .misplaced(let path, let needed):
            """
            \(path) is no \(needed.rawValue), and Muster needs one there
              To move away what stands there, which loses nothing, type:
              mv \(Self.words([path])) \(Self.words([FilePath(path.string + ".old")]))
            """
        case .noAccess(let path, let owner, let isOwn):
            """
            \(path), which the private database needs, belongs to the user \(owner), and this user may not use it
              To change that, which loses nothing, type\(isOwn ? "" : " (as root)"):
              \(isOwn ? "chmod u+rw" : "chown \(ServerAccount(userID: geteuid(), groupID: getegid()).name)") \(Self.words([path]))
            """
        case .fileOperation(let operation, let path, let errno):
            "\(operation) \(path): \(errno)"
        }
    }

    /// How to begin with a new database, and what is lost by that.
    private static func beginningAnew(_ files: [FilePath]) -> String {
        """
        To begin with a new one, type the line below, and run the same command again: files that are finished are safe and are taken over once their \
        origins have confirmed them, but what the old one knew of groups and unfinished files is lost, unless there is a backup.
          \(files.map { "mv \(words([$0])) \(words([$0])).$(date +%s)" }.joined(separator: " && "))
        """
    }

    private static func words(_ files: [FilePath]) -> String {
        files.map { EmbeddedPostgres.quoted($0.string) }.joined(separator: " ")
    }

    /// Rounded up, so that a small lack is not shown as 0.
    private static func mebibytes(_ bytes: Int64) -> String { "\((bytes + (1 << 20) - 1) >> 20) MiB" }
}
