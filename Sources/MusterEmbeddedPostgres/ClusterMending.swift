import SystemPackage

/// Repairs parts of a cluster that contain no data, without asking the user.
struct ClusterMending: Sendable {
    let location: ClusterLocation
    let account: ServerAccount
    /// Called with each repair.
    let onNews: @Sendable (EmbeddedPostgres.StartNews) -> Void

    /// Directories whose content the next server does not need. Most are always empty, so that copies by some programs lack them.
    private static let directories = [
        "pg_commit_ts", "pg_dynshmem", "pg_logical", "pg_logical/mappings", "pg_logical/snapshots", "pg_notify",
        "pg_replslot", "pg_serial", "pg_snapshots", "pg_stat", "pg_stat_tmp", "pg_subtrans", "pg_tblspc", "pg_twophase",
    ]
    /// Files that tell a server to take part in a replication or to begin with a backup. A private server does neither, and
    /// makes no such files.
    private static let orders = ["standby.signal", "recovery.signal", "backup_label", "tablespace_map"]
    /// Files that a server writes anew at each start, and does not read.
    private static let notes = ["postmaster.opts"]
    /// The settings files that a server must be able to read to start. They are the same for all clusters, and contain
    /// nothing about the data.
    private static let settings =
        ClusterCreation.settings + [
            ("postgresql.auto.conf", "# Muster gives the settings at each start of the server.\n")
        ]

    /// Repairs, before a start, what the start needs.
    func prepare() throws {
        let data = location.dataDirectory
        let missing = try Self.directories.filter { try PrivateFiles.status(data.appending($0)) == nil }
        for name in missing {
            _ = try PrivateFiles.makeDirectory(data.appending(name), permissions: 0o700)
            try give(data.appending(name))
        }
        if !missing.isEmpty {
            onNews(.mended("directories of \(data) were missing (\(missing.joined(separator: ", "))); made them again"))
        }
        for name in Self.orders where try PrivateFiles.status(data.appending(name)) != nil {
            let kept = try setAside(data.appending(name))
            onNews(.mended("\(data.appending(name)) is for no private database; it is called \(kept) now"))
        }
        for name in Self.notes {
            guard let found = try PrivateFiles.status(data.appending(name)), found.type != .regular else { continue }
            let kept = try setAside(data.appending(name))
            onNews(.mended("\(data.appending(name)) is no file; it is called \(kept) now"))
        }
    }

    /// Writes the settings again that a server has refused, according to its log. Returns false if it has refused none, or
    /// if they are correct.
    func renewSettings(refusedIn log: String) throws -> Bool {
        guard ClusterTrouble.blamesSettings(log) else { return false }
        var isNew = false
        for (name, text) in Self.settings {
            let path = location.dataDirectory.appending(name)
            let found = try PrivateFiles.status(path)
            // A file that the log does not mention may be as the user wants it.
            guard log.contains(name),
                try found?.type != .regular || PrivateFiles.tail(path, limitBytes: 1024) != text
            else { continue }
            let fault =
                try found == nil
                ? "was missing; wrote it again" : "can't be used; wrote it again (the old one is \(setAside(path)))"
            try PrivateFiles.write(text, to: path)
            try give(path)
            onNews(.mended("\(path) \(fault)"))
            isNew = true
        }
        return isNew
    }

    /// Renames a server's file that names no server. No process works in the data directory then.
    func setServerFileAside() throws {
        let path = location.dataDirectory.appending(PostmasterFile.name)
        let kept = try setAside(path)
        onNews(.mended("\(path) named no server; it is called \(kept) now"))
    }

    /// Gives a file another name, which is returned.
    private func setAside(_ path: FilePath) throws -> String {
        let kept = FilePath(path.string + ".old")
        try PrivateFiles.rename(path, to: kept)
        return kept.lastComponent?.string ?? kept.string
    }

    private func give(_ path: FilePath) throws {
        if account.needsSwitch { try PrivateFiles.give(path, to: account) }
    }
}
