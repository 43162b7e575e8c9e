import Glibc
import MusterPostgres
import Synchronization

/// A private PostgreSQL in a temporary directory, reached through a Unix socket only.
///
/// A shell supervises the server and stops it when its standard input ends, hence also when the test process is killed.
final class TestCluster: Sendable {
    enum Failure: Error {
        case notStarted(String)
    }

    /// The cluster that tests share if they don't disturb each other.
    static func shared() throws -> TestCluster {
        try sharedResult.get()
    }

    private static let sharedResult = Result { try TestCluster() }
    private static let schemas = Mutex(0)

    let directory: String
    private let supervisor: pid_t
    private let commands: Int32
    private let answers: Int32

    init() throws {
        var input: [Int32] = [-1, -1]
        var output: [Int32] = [-1, -1]
        guard pipe(&input) == 0, pipe(&output) == 0 else { throw Failure.notStarted("pipe") }
        for descriptor in input + output {
            _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, input[0], 0)
        posix_spawn_file_actions_adddup2(&actions, output[1], 1)

        let words: [String] = ["sh", "-c", Self.script]
        var arguments: [UnsafeMutablePointer<CChar>?] = words.map { strdup($0) }
        defer { arguments.forEach { free($0) } }
        arguments.append(nil)
        var pid = pid_t()
        guard posix_spawn(&pid, "/bin/sh", &actions, nil, arguments, environ) == 0 else {
            throw Failure.notStarted("spawn")
        }
        close(input[0])
        close(output[1])
        supervisor = pid
        commands = input[1]
        answers = output[0]
        directory = Self.line(from: output[0])
        let state = Self.line(from: output[0])
        guard state == "ready" else { throw Failure.notStarted(state) }
    }

    /// Stops the server and removes its data.
    func stop() {
        close(commands)
        var status: Int32 = 0
        waitpid(supervisor, &status, 0)
        close(answers)
    }

    /// Ends the server as a crash would, and returns when it is gone.
    func crash() { tell("crash") }
    /// Starts the server again, and returns when it takes connections.
    func start() { tell("start") }

    private func tell(_ command: String) {
        let line = Array((command + "\n").utf8)
        _ = write(commands, line, line.count)
        _ = Self.line(from: answers)
    }

    private static func line(from descriptor: Int32) -> String {
        var bytes: [UInt8] = []
        var byte: UInt8 = 0
        while read(descriptor, &byte, 1) == 1, byte != UInt8(ascii: "\n") {
            bytes.append(byte)
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// A configuration for this cluster.
    func configuration(user: String = "tester", more: String = "") -> PostgresConfiguration {
        PostgresConfiguration("host=\(directory) user=\(user) dbname=postgres \(more)")
    }

    /// Makes a new schema, and returns a configuration that works in it.
    func schema() async throws -> PostgresConfiguration {
        let number = Self.schemas.withLock { number in
            number += 1
            return number
        }
        var configuration = configuration()
        configuration.searchPath = ["test \(number)"]
        let connection = try await PostgresConnection.open(configuration)
        try await connection.query("CREATE SCHEMA \(identifier: "test \(number)")")
        await connection.close()
        return configuration
    }

    private static let script = """
        set -u
        exec 2>&1
        bin=$(pg_config --bindir 2>/dev/null)
        if [ ! -x "$bin/postgres" ]; then
            for candidate in /usr/lib/postgresql/*/bin; do bin=$candidate; done
        fi
        dir=$(mktemp -d /tmp/mpgXXXXXX)
        echo "$dir"
        as=""
        if [ "$(id -u)" = 0 ]; then
            chown postgres "$dir"
            as="setpriv --reuid=postgres --regid=postgres --clear-groups"
        fi
        cd "$dir"
        log=$dir/setup.log
        $as "$bin/initdb" -D "$dir/data" -U tester -A trust -E UTF8 --locale=C.UTF-8 --no-sync >"$log" 2>&1 \
            || { echo "initdb failed: $(tail -n 1 "$log")"; rm -rf "$dir"; exit 1; }
        printf 'local all secretive scram-sha-256\\nlocal all all trust\\n' >"$dir/data/pg_hba.conf"
        start() {
            $as "$bin/postgres" -D "$dir/data" -k "$dir" -c listen_addresses= -c fsync=off -c max_connections=200 \
                -c deadlock_timeout=50ms -c shared_buffers=16MB -c logging_collector=off \
                >>"$log" 2>&1 </dev/null &
            server=$!
            until "$bin/pg_isready" -q -h "$dir" -d postgres -U tester; do
                kill -0 $server 2>/dev/null || { echo "postgres failed: $(tail -n 1 "$log")"; exit 1; }
                sleep 0.05
            done
            echo ready
        }
        trap '' INT TERM HUP PIPE
        start
        while read -r command; do
            case $command in
            crash) kill -QUIT $server; wait $server; echo crashed ;;
            start) start ;;
            esac
        done
        kill -QUIT $server 2>/dev/null
        wait $server
        rm -rf "$dir"
        """
}

/// The error that an operation threw, for tests that inspect it; nil if it threw none.
func failure<R>(of operation: () async throws -> R) async -> (any Error)? {
    do {
        _ = try await operation()
        return nil
    } catch {
        return error
    }
}

/// A value that several tasks of a test share.
final class Shared<Value: Sendable>: Sendable {
    private let value: Mutex<Value>

    init(_ value: Value) {
        self.value = Mutex(value)
    }

    func withLock<R: Sendable>(_ body: (inout Value) -> R) -> R {
        value.withLock { value in
            var copy = value
            defer { value = copy }
            return body(&copy)
        }
    }
}
