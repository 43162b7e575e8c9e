import MusterTestSupport
import SystemPackage

/// The database of the storm: a primary and its synchronous standby, which takes its place once.
actor StormDatabase {
    /// The cluster that is the primary at first.
    nonisolated let primary: TestPostgres
    private nonisolated let standby: PostgresCopy
    /// The fleet's database on the first primary.
    private var conninfo = ""
    private var hasFailedOver = false

    /// Starts both.
    static func start() async throws -> StormDatabase {
        var settings = PostgresCopy.sourceSettings(isSynchronous: true)
        // Commits wait for the standby, which looks for its primary again after this time.
        settings["wal_retrieve_retry_interval"] = "200ms"
        let primary = try await TestPostgres.start(settings: settings)
        let standby = try await PostgresCopy(of: primary)
        try await standby.copySource()
        try await standby.start(as: .standby)
        return StormDatabase(primary, standby)
    }

    private init(_ primary: TestPostgres, _ standby: PostgresCopy) {
        self.primary = primary
        self.standby = standby
    }

    /// Takes the fleet's database as its own.
    func use(_ conninfo: String) { self.conninfo = conninfo }

    /// Opens a path to each of the two servers, and returns the connection string that uses them. The last value of a keyword counts.
    func openPaths() async throws -> (conninfo: String, paths: [DistantPath]) {
        var paths: [DistantPath] = []
        for directory in [await primary.socketDirectory, standby.socketDirectory] {
            paths.append(try await DistantPath.open(to: .socket(FilePath(directory).appending(".s.PGSQL.5432"))))
        }
        let ports = paths.map { "\($0.port)" }.joined(separator: ",")
        let servers = "host=127.0.0.1,127.0.0.1 port=\(ports) sslmode=disable gssencmode=disable"
        return ("\(conninfo) \(servers) target_session_attrs=read-write", paths)
    }

    /// Runs SQL on the present primary, not through the paths.
    @discardableResult
    func execute(_ sql: String) async throws -> String {
        let promoted = "\(conninfo) host=\(standby.socketDirectory)"
        return try await primary.execute(sql, conninfo: hasFailedOver ? promoted : conninfo)
    }

    /// The cluster, for as long as it can be stopped and started again.
    func cluster() throws(StormFault.NotPlayed) -> TestPostgres {
        guard !hasFailedOver else { throw StormFault.NotPlayed(reason: "the standby has taken over") }
        return primary
    }

    /// Kills the primary with all of its processes.
    func killPrimary() async throws { try await primary.crash() }

    /// Promotes the standby.
    func failOver() async throws {
        try await standby.promote()
        hasFailedOver = true
    }

    /// Stops the standby, if it is one still; the primary goes with its owner.
    func stop() async throws { try await standby.stop() }
}
