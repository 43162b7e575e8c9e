import Glibc
import SystemPackage

/// The user that the server runs as.
struct ServerAccount: Sendable, Hashable {
    let userID: uid_t
    let groupID: gid_t

    /// Whether a program has to change its user to run as this account.
    var needsSwitch: Bool { userID != geteuid() }

    /// The account for a new data directory: PostgreSQL refuses to run as root, so for root it is `postgres`, or else
    /// `nobody`; other users run the server as themselves.
    static func forNewCluster() throws -> ServerAccount {
        guard geteuid() == 0 else { return ServerAccount(userID: geteuid(), groupID: getegid()) }
        for name in ["postgres", "nobody"] {
            if let account = named(name), account.userID != 0 { return account }
        }
        throw EmbeddedPostgresError.noServerAccount
    }

    /// The account for a data directory that exists: its owner, as PostgreSQL demands. The log directory must belong to the
    /// same account.
    static func owning(_ location: ClusterLocation, status: Stat) throws -> ServerAccount {
        let account = ServerAccount(status)
        func canRunAs(_ account: ServerAccount) -> Bool {
            account.userID != 0 && (geteuid() == 0 || !account.needsSwitch)
        }
        let logging = try PrivateFiles.status(location.logDirectory).map { ServerAccount($0) } ?? account
        guard canRunAs(account), logging.userID == account.userID else {
            let new = try forNewCluster()
            // The owner of the directory whose owner was not changed.
            let right =
                [account, logging].first { $0.userID == new.userID } ?? [account, logging].first(where: canRunAs)
            let owners = logging.userID == account.userID ? "" : ", and its log to \(logging.name)"
            throw try location.foreign("it belongs to the user \(account.name)\(owners)", right ?? new)
        }
        return account
    }

    /// The account that owns a file.
    init(_ owner: Stat) {
        (userID, groupID) = (owner.userID.rawValue, owner.groupID.rawValue)
    }

    /// The account of a user and a group.
    init(userID: uid_t, groupID: gid_t) {
        (self.userID, self.groupID) = (userID, groupID)
    }

    /// Whether the mode of a directory lets the account pass through it.
    func canPass(_ directory: Stat) -> Bool {
        let bit: CInterop.Mode =
            directory.userID.rawValue == userID ? 0o100 : directory.groupID.rawValue == groupID ? 0o010 : 0o001
        return directory.permissions.rawValue & bit != 0
    }

    /// The name of its user, or else the number.
    var name: String { getpwuid(userID).map { String(cString: $0.pointee.pw_name) } ?? "\(userID)" }

    private static func named(_ name: String) -> ServerAccount? {
        var record = passwd()
        var found: UnsafeMutablePointer<passwd>?
        // Large enough for any entry of a local or directory service; a longer one counts as not found.
        var strings = [CChar](repeating: 0, count: 64 * 1024)
        guard getpwnam_r(name, &record, &strings, strings.count, &found) == 0, found != nil else { return nil }
        return ServerAccount(userID: record.pw_uid, groupID: record.pw_gid)
    }
}
