public import SystemPackage

extension EmbeddedPostgres {
    /// How the server is tuned, and how long it may take.
    public struct Configuration: Sendable, Hashable {
        /// How durable a committed transaction is.
        public enum Durability: Sendable, Hashable {
            /// A commit survives any crash, of the machine too (I10).
            case full
            /// No flush at all: a crash of the machine may lose the database. Only for tests that test no durability, and
            /// for making templates.
            case none
        }

        /// Memory for PostgreSQL's page cache, in MiB.
        public var sharedBuffersMiB = 96
        /// The most connections at a time.
        public var maxConnections = 60
        /// What a commit waits for.
        public var durability: Durability = .full
        /// The longest that the server may take until it accepts connections, crash recovery included.
        public var startLimit: Duration = .seconds(120)
        /// The longest that a fast shutdown may take; after that the server is stopped without its final checkpoint.
        public var stopLimit: Duration = .seconds(30)
        /// How much room is kept for the server on its disk, in MiB, for when everything else is used up; 0 keeps none.
        public var reserveMiB = 0
        /// The directory below which a cluster is kept if the server's account cannot reach its state directory.
        public var fallbackDirectory: FilePath = "/var/lib/muster"
        /// Whether a new cluster is copied from a template; one that is to become a template is not.
        var usesTemplate = true
        /// Whether a copied cluster has the databases `template0` and `template1`, which are half of its files. `CREATE
        /// DATABASE` and `pg_upgrade` need them, Muster does not.
        public var hasTemplateDatabases = true
        /// Further settings of PostgreSQL by name, which win over those of this type.
        public var settings: [String: String] = [:]

        /// The defaults: durable, and small enough to share a machine with everything else.
        public init() {}

        /// The server's arguments.
        ///
        /// They are given at each start rather than written to `postgresql.conf`, so that a data directory made by an
        /// older release gets the settings of this one.
        func serverArguments(dataDirectory: FilePath, socketDirectory: FilePath, logDirectory: FilePath) -> [String] {
            var values: [String: String] = [
                "listen_addresses": "",
                "port": "5432",
                "unix_socket_directories": socketDirectory.string,
                "unix_socket_permissions": "0700",
                "max_connections": "\(maxConnections)",
                "shared_buffers": "\(sharedBuffersMiB)MB",
                "max_worker_processes": "4",
                // All statements are short; parallel plans would only need more shared memory than containers grant.
                "max_parallel_workers_per_gather": "0",
                "jit": "off",
                // No replica is ever attached, so that WAL need carry only what recovery reads.
                "wal_level": "minimal",
                "max_wal_senders": "0",
                "wal_compression": "on",
                "checkpoint_timeout": "10min",
                // The queue's tables churn all the time, and bloat is what makes a queue slow.
                "autovacuum": "on",
                "autovacuum_naptime": "10s",
                "autovacuum_vacuum_cost_limit": "1000",
                // The process that uses the server starts it again, and sees why it does not start.
                "restart_after_crash": "off",
                // A stopped coordinator (F4) must not hold its locks and its snapshot for long.
                "idle_in_transaction_session_timeout": "30s",
                "timezone": "UTC",
                "log_timezone": "UTC",
                "lc_messages": "C",
                // One file per weekday, emptied a week later. Errors of statements are reported by the clients that sent them,
                // and their text may hold secrets: neither is logged here, which keeps the files small as well.
                "logging_collector": "on",
                "log_directory": logDirectory.string,
                "log_filename": "postgresql-%u.log",
                "log_rotation_age": "1d",
                "log_rotation_size": "0",
                "log_truncate_on_rotation": "on",
                "log_min_messages": "log",
                "log_min_error_statement": "panic",
            ]
            switch durability {
            case .full:
                values["fsync"] = "on"
                values["synchronous_commit"] = "on"
                values["full_page_writes"] = "on"
            case .none:
                values["fsync"] = "off"
                values["synchronous_commit"] = "off"
                values["full_page_writes"] = "off"
                // What is not flushed costs less to write than to compress.
                values["wal_compression"] = "off"
            }
            values.merge(settings) { _, given in given }
            return ["-D", dataDirectory.string]
                + values.sorted { $0.key < $1.key }.flatMap { ["-c", "\($0.key)=\($0.value)"] }
        }

        /// The space reserve in a location.
        func reserve(_ location: ClusterLocation) -> SpaceReserve {
            SpaceReserve(path: location.reserve, size: Int64(reserveMiB) << 20)
        }
    }
}
