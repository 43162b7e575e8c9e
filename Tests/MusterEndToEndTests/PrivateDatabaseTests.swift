import FoundationEssentials
import Glibc
import MusterTestSupport
import SystemPackage
import Testing

extension EndToEnd {
    /// The private PostgreSQL of `get` and `up`, and what becomes of a command that loses it.
    @Suite struct PrivateDatabase {
        private let directory: TemporaryDirectory
        private let origin: ScriptedOrigin

        init() async throws {
            directory = try TemporaryDirectory(
                permissions: [.ownerReadWriteExecute, .groupReadExecute, .otherReadExecute])
            origin = try await ScriptedOrigin.start()
        }

        private var files: FilePath { directory.path.appending("files") }
        private var data: FilePath { files.appending(".muster/pg/data") }

        private func get(_ file: WantedFile, _ environment: [String: String?] = [:]) async throws -> TestProcess {
            try await TestProcess.muster(["get", "-d", files.string, file.url], environment: environment)
        }

        /// Runs a command, in which `D` is the data directory.
        private func shell(_ command: String) async throws {
            let words = command.replacing(/\bD\b/.wordBoundaryKind(.simple)) { _ in "\(data)" }
            let shell = try await TestProcess.start("/bin/sh", arguments: ["-c", words])
            #expect(try await shell.waitForExit(limit: .seconds(20)) == .exited(0), "\(shell.standardError)")
        }

        private func text(of path: FilePath) throws -> String {
            try String(contentsOfFile: path.string, encoding: .utf8)
        }

        /// PostgreSQL's own programs, with a `postgres` that a signal ends at its start, as often as there are files in the directory `kills`.
        private func mortalBinaries() async throws -> (binaries: FilePath, kills: FilePath) {
            let (binaries, kills) = (directory.path.appending("bin"), directory.path.appending("kills"))
            for path in [binaries, kills] {
                try FileManager.default.createDirectory(atPath: path.string, withIntermediateDirectories: true)
            }
            // The server runs under another account if this process is root's.
            try FileManager.default.setAttributes([.posixPermissions: 0o777], ofItemAtPath: kills.string)
            // The directory of the installed programs, from the command line in the server's postmaster.opts.
            let first = origin.serveFile("first.bin", size: .kibibytes(10), seed: 1)
            #expect(try await get(first).waitForExit(limit: .seconds(120)) == .exited(0))
            let postgres = FilePath(String(try text(of: data.appending("postmaster.opts")).prefix { $0 != " " }))
                .removingLastComponent()
            for name in try FileManager.default.contentsOfDirectory(atPath: postgres.string) where name != "postgres" {
                try FileManager.default.createSymbolicLink(
                    atPath: binaries.appending(name).string, withDestinationPath: postgres.appending(name).string)
            }
            let script = binaries.appending("postgres").string
            try Data(
                """
                #!/bin/sh
                for kill in "\(kills)"/*; do
                    [ "$1" = -D ] && [ -e "$kill" ] && rm "$kill" && kill -9 $$
                done
                exec "\(postgres)/postgres" "$@"
                """.utf8
            ).write(to: URL(filePath: script))
            try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: script)
            return (binaries, kills)
        }

        @Test func aServerThatIsKilledWhileItStartsIsStartedUntilItRuns() async throws {
            let (binaries, kills) = try await mortalBinaries()
            let file = origin.serveFile("f.bin", size: .mebibytes(1), seed: 1)
            origin.hold("/\(file.path)", afterBytes: .kibibytes(100))
            let get = try await get(file, ["MUSTER_PG_BINDIR": binaries.string])
            try await origin.waitUntil("/\(file.path)", bytesSent: .kibibytes(100))
            for number in 1...4 { try Data().write(to: URL(filePath: kills.appending("\(number)").string)) }
            let server = try #require(
                Int32(try text(of: data.appending("postmaster.pid")).prefix { $0 != "\n" }))
            try #require(kill(server, SIGKILL) == 0)
            try await get.waitForLine(containing: "the private PostgreSQL runs again", in: .standardError)
            origin.release("/\(file.path)")
            #expect(try await get.waitForExit(limit: .seconds(120)) == .exited(0), "\(get.standardError)")
            #expect(try FileDigest.sha256(files.appending(file.path)) == file.sha256)
            let told = get.standardError.split(separator: "\n").filter { $0.contains("is started again") }
            #expect(
                told.count == 5 && told[1...].allSatisfy { $0.contains("it was killed while it started") }, "\(told)")
            #expect(!get.standardError.contains("coordinator"), "none was mentioned: \(get.standardError)")
        }

        /// A first start may be hit as well.
        @Test func aServerThatIsKilledAtItsFirstStartIsStartedAgain() async throws {
            let (binaries, kills) = try await mortalBinaries()
            let file = origin.serveFile("f.bin", size: .kibibytes(10), seed: 1)
            try Data().write(to: URL(filePath: kills.appending("1").string))
            let again = try await get(file, ["MUSTER_PG_BINDIR": binaries.string])
            #expect(try await again.waitForExit(limit: .seconds(120)) == .exited(0), "\(again.standardError)")
            #expect(again.standardError.contains("it was killed while it started"))
        }

        /// Damage that a user may do to a database, and words of the message about it.
        @Test(arguments: [
            ("rm D/global/pg_filenode.map", "is damaged: global/pg_filenode.map is missing or empty"),
            ("rm D/base/5/pg_filenode.map", "is damaged: could not open file \"base/5/pg_filenode.map\""),
            ("rm D/PG_VERSION; echo x >D/PG_VERSION", "is damaged: its PG_VERSION names no version"),
            ("echo 9 >D/PG_VERSION", "was made by PostgreSQL 9, and here is another one"),
            ("chmod 000 D/postgresql.conf; chown -R 0 D/global", "global belongs to the user root"),
            ("chown 0 D/global/pg_control", "global/pg_control belongs to the user root"),
            ("chown 0 D/pg_xact/0000", "pg_xact/0000 belongs to the user root"),
            ("chown 0 D/base/5/PG_VERSION", "base/5/PG_VERSION belongs to the user root"),
            ("chown -R 1 D/base", "base belongs to the user"),
            ("chown -R 1 D", "it belongs to the user"),
            ("find D/global -name '[0-9]*' -exec truncate -s 0 {} +", "role \"muster\" does not exist"),
            ("chmod 700 D/../../..", "can't enter"),
            ("chmod -R go-rwx D/../../..", "can't enter"),
            ("chattr +i D", "Nobody can while something there is immutable"),
            ("rm D/../owner.lock; mkdir D/../owner.lock", "owner.lock is no file"),
            ("rm -f D/../supervision.lock; ln -s none D/../supervision.lock", "supervision.lock is no file"),
            ("rm D/../../muster.lock; mkdir D/../../muster.lock", "muster.lock is no file"),
            ("rm -rf D/../run; echo x >D/../run", "run is no directory"),
            ("rm -rf D/../log; echo x >D/../log", "log is no directory"),
            ("rm D/PG_VERSION; mkdir D/PG_VERSION", "is damaged: PG_VERSION is missing or empty, or no file"),
        ])
        func commandOfTheMessageHelpsADatabaseThatCanNotBeUsed(damage: String, reason: String) async throws {
            let file = origin.serveFile("f.bin", size: .kibibytes(10), seed: 1)
            #expect(try await get(file).waitForExit(limit: .seconds(120)) == .exited(0))
            try await shell(damage)
            let failed = try await get(file)
            #expect(try await failed.waitForExit(limit: .seconds(120)) == .exited(1))
            let message = failed.standardError
            #expect(message.contains(reason) && !message.contains("LOG:"), "\(message)")
            let command = try #require(message.split(separator: "\n").last { $0.hasPrefix("  ") })
            try await shell(String(command))
            let again = try await get(file)
            #expect(try await again.waitForExit(limit: .seconds(120)) == .exited(0), "\(again.standardError)")
        }

        /// Environment variables that tell other programs of their server, and signals that a shell ignores, don't affect the private server.
        @Test(arguments: [
            "PGHOSTADDR": "127.0.0.2", "PGSERVICE": "none", "PGTZ": "none", "PGSSLMODE": "none", "PGPORT": "1",
            "PGTARGETSESSIONATTRS": "standby", "PGOPTIONS": "-c nonsense=1", "PGCHANNELBINDING": "require",
            "PGGSSENCMODE": "require",
        ])
        func libpqVariablesOfTheEnvironmentDoNotAffectThePrivateServer(name: String, value: String) async throws {
            let file = origin.serveFile("f.bin", size: .kibibytes(10), seed: 1)
            let get = try await get(file, [name: value])
            #expect(try await get.waitForExit(limit: .seconds(120)) == .exited(0), "\(get.standardError)")
        }

        /// A parent that ignores SIGCHLD passes that on to `get`, whose own children could then vanish before `get` waits for them.
        @Test func childrenAreWaitedForThoughSIGCHLDIsIgnored() async throws {
            let file = origin.serveFile("f.bin", size: .kibibytes(10), seed: 1)
            let get = try await TestProcess.start(
                "/bin/sh",
                arguments: [
                    "-c", "trap '' CHLD; exec \"$@\"", "sh", try TestProcess.musterExecutable().string, "get", "-d",
                    files.string, file.url,
                ])
            #expect(try await get.waitForExit(limit: .seconds(120)) == .exited(0), "\(get.standardError)")
        }

        /// The settings are the same for every database, and there is no data in files that copies leave out or that other programs add.
        @Test(arguments: [
            ("rm D/postgresql.conf", "postgresql.conf was missing; wrote it again"),
            ("rm D/postgresql.conf; mkdir D/postgresql.conf", "postgresql.conf can't be used; wrote it again"),
            ("rm D/pg_hba.conf", "pg_hba.conf was missing; wrote it again"),
            (": >D/pg_hba.conf", "pg_hba.conf can't be used; wrote it again (the old one is pg_hba.conf.old)"),
            ("head -c 99 /dev/zero >D/postgresql.conf", "postgresql.conf can't be used; wrote it again"),
            ("head -c 99 /dev/zero >D/postgresql.auto.conf", "postgresql.auto.conf can't be used; wrote it again"),
            ("touch D/standby.signal", "standby.signal is for no private database; it is called standby.signal.old"),
            ("echo x >D/backup_label", "backup_label is for no private database"),
            ("find D -type d -empty -delete", "pg_notify, "),
            ("head -c 99 /dev/zero >D/postmaster.pid", "postmaster.pid named no server"),
            (": >D/postmaster.pid", "postmaster.pid named no server"),
            ("mkdir D/postmaster.pid", "postmaster.pid named no server"),
            (
                "rm D/postmaster.opts; mkdir D/postmaster.opts",
                "postmaster.opts is no file; it is called postmaster.opts.old"
            ),
        ])
        func damagedFilesWithoutDataAreMended(damage: String, reason: String) async throws {
            let file = origin.serveFile("f.bin", size: .kibibytes(10), seed: 1)
            #expect(try await get(file).waitForExit(limit: .seconds(120)) == .exited(0))
            try await shell(damage)
            let again = try await get(file)
            #expect(try await again.waitForExit(limit: .seconds(120)) == .exited(0), "\(again.standardError)")
            #expect(
                again.standardError.contains(reason) && again.standardError.contains("and nothing is lost"),
                "\(again.standardError)")
            #expect(again.standardOutput.contains("nothing to do"), "what the database knew is there")
            #expect(try await get(file).waitForExit(limit: .seconds(120)) == .exited(0))
        }

        /// The files are what the user wants, even if the output has no reader.
        @Test func readerThatIsGoneStopsNothing() async throws {
            let file = origin.serveFile("f.bin", size: .mebibytes(1), seed: 1)
            origin.hold("/\(file.path)", afterBytes: .kibibytes(100))
            let script = "{ \"$@\"; echo \"status $?\" >&2; } | { head -n 1 >&2; exec <&-; echo closed >&2; }"
            let get = try await TestProcess.start(
                "/bin/sh",
                arguments: [
                    "-c", script, "sh", try TestProcess.musterExecutable().string, "get", "-d", files.string, file.url,
                ])
            try await get.waitForLine(containing: "closed", in: .standardError)
            origin.release("/\(file.path)")
            #expect(try await get.waitForExit(limit: .seconds(120)) == .exited(0), "\(get.standardError)")
            #expect(get.standardError.contains("its reader is gone"), "\(get.standardError)")
            #expect(get.standardError.contains("status 0"), "\(get.standardError)")
            #expect(try FileDigest.sha256(files.appending(file.path)) == file.sha256)
            #expect(!FileManager.default.fileExists(atPath: data.appending("postmaster.pid").string))
        }

        /// Ctrl-\ ends the command without a dump of its threads.
        @Test func quittingEndsACommandAsTerminatingDoes() async throws {
            let file = origin.serveFile("f.bin", size: .mebibytes(1), seed: 1)
            origin.hold("/\(file.path)", afterBytes: .kibibytes(100))
            let running = try await get(file)
            try await origin.waitUntil("/\(file.path)", bytesSent: .kibibytes(100))
            try running.signal(SIGQUIT)
            #expect(try await running.waitForExit(limit: .seconds(120)) == .exited(143))
            #expect(running.standardError.contains("stopped; run the same command again"), "\(running.standardError)")
            #expect(!FileManager.default.fileExists(atPath: data.appending("postmaster.pid").string))
        }

        /// The server runs on until it needs a file that isn't there.
        @Test func databaseThatIsDamagedWhileItIsUsedEndsTheCommand() async throws {
            let file = origin.serveFile("f.bin", size: .mebibytes(1), seed: 1)
            origin.hold("/\(file.path)", afterBytes: .kibibytes(100))
            let running = try await get(file)
            try await origin.waitUntil("/\(file.path)", bytesSent: .kibibytes(100))
            try await shell("rm -rf D/base")
            #expect(try await running.waitForExit(limit: .seconds(120)) == .exited(1))
            #expect(running.standardError.contains("is damaged"), "\(running.standardError)")
        }

        /// The start of a shell command that runs SQL on the running server, to find its rows and files.
        private static let psql = "psql -XAtq -h $(sed -n 5p D/postmaster.pid) -U muster muster"

        /// PostgreSQL takes a page of zeros for an empty one, and such a page has no checksum.
        @Test(arguments: [
            ("groups", "rows of the table groups are gone"), ("tasks", "rows of the table tasks are gone"),
            ("sources", "rows of the table sources are gone"), ("origins", "rows of the table origins are gone"),
            ("ready_chunks", "rows of the table ready_chunks are gone"), ("tasks_pkey", "tasks_pkey"),
            ("lease_epochs", "lease_epochs"),
        ])
        func zerosInThePlaceOfRowsEndTheCommand(relation: String, reason: String) async throws {
            let file = origin.serveFile("f.bin", size: .mebibytes(1), seed: 1)
            origin.hold("/\(file.path)", afterBytes: .kibibytes(100))
            let running = try await get(file)
            try await origin.waitUntil("/\(file.path)", bytesSent: .kibibytes(100))
            try await shell("\(Self.psql) -c \"SELECT pg_relation_filepath('\(relation)')\" >D/../../relation")
            try running.signal(SIGINT)
            #expect(try await running.waitForExit(limit: .seconds(120)) == .exited(130))
            try await shell("f=D/$(cat D/../../relation); n=$(wc -c <$f); head -c $n /dev/zero >f0; cat f0 >$f; rm f0")
            let again = try await get(file)
            #expect(try await again.waitForExit(limit: .seconds(120)) == .exited(1))
            #expect(
                again.standardError.contains("is damaged") && again.standardError.contains(reason),
                "\(again.standardError)")
        }

        /// Bytes that the disk returns changed are not taken for rows.
        @Test func aByteThatHasChangedEndsTheCommand() async throws {
            let file = origin.serveFile("f.bin", size: .mebibytes(1), seed: 1)
            origin.hold("/\(file.path)", afterBytes: .kibibytes(100))
            let running = try await get(file)
            try await origin.waitUntil("/\(file.path)", bytesSent: .kibibytes(100))
            try await shell("\(Self.psql) -c \"SELECT pg_relation_filepath('tasks')\" >D/../../relation")
            try running.signal(SIGINT)
            #expect(try await running.waitForExit(limit: .seconds(120)) == .exited(130))
            // The key of the task: only the check of the page can notice this change.
            try await shell("sed -i s/f.bin/g.bin/ D/$(cat D/../../relation)")
            let again = try await get(file)
            #expect(try await again.waitForExit(limit: .seconds(120)) == .exited(1))
            #expect(again.standardError.contains("invalid page in block 0"), "\(again.standardError)")
        }

        /// Only the group's own workers could go on with it, and they have nothing to do.
        @Test func aGroupWhoseWorkIsGoneEndsTheCommand() async throws {
            let file = origin.serveFile("f.bin", size: .mebibytes(1), seed: 1)
            origin.hold("/\(file.path)", afterBytes: .kibibytes(100))
            let running = try await get(file)
            try await origin.waitUntil("/\(file.path)", bytesSent: .kibibytes(100))
            try await shell("\(Self.psql) -c 'DELETE FROM leases; DELETE FROM ready_chunks'")
            origin.release("/\(file.path)")
            #expect(try await running.waitForExit(limit: .seconds(120)) == .exited(1))
            #expect(
                running.standardError.contains("is damaged: nothing is under way"), "\(running.standardError)")
        }

        /// The user removes the database while it is in use, or replaces it with another one.
        @Test(arguments: ["rm -rf D", "rm -rf D/*", "mv D D.old", "cp -a D D.new || true; mv D D.old; mv D.new D"])
        func databaseThatIsTakenAwayEndsTheCommand(damage: String) async throws {
            let file = origin.serveFile("f.bin", size: .mebibytes(1), seed: 1)
            origin.hold("/\(file.path)", afterBytes: .kibibytes(100))
            let running = try await get(file)
            try await origin.waitUntil("/\(file.path)", bytesSent: .kibibytes(100))
            try await shell(damage)
            #expect(try await running.waitForExit(limit: .seconds(120)) == .exited(1))
            #expect(
                running.standardError.contains("was removed or replaced while it was used"), "\(running.standardError)")
            origin.release("/\(file.path)")
            // An empty directory may be the mount point of a disk, so it is not used as it is.
            if damage.hasSuffix("*") { try await shell("rmdir D") }
            let again = try await get(file)
            #expect(try await again.waitForExit(limit: .seconds(120)) == .exited(0), "\(again.standardError)")
            #expect(try FileDigest.sha256(files.appending(file.path)) == file.sha256)
        }
    }
}
