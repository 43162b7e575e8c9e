import Glibc
import MusterSystem
import Subprocess
import Synchronization
import SystemPackage

/// The shell process between this process and the server, which stops the server when this process hangs up or dies.
///
/// It is a few lines of `sh` given on the command line, so that it depends neither on a file nor on the caller's
/// executable. It runs in a session of its own, where no Ctrl-C of a terminal reaches it, and as the server's account,
/// so that it can signal that account's processes only.
final class Supervisor: Sendable {
    /// The server that the supervisor looks after.
    enum Charge: Sendable {
        /// A server that it starts.
        case start(program: FilePath, arguments: [String])
        /// A server that is running already, and is not its child.
        case adopt(processID: Int32)
    }

    private let pipe: LifePipe
    private let outcome: Outcome
    private let end: Task<Void, Never>

    /// Starts a supervisor.
    ///
    /// - Parameter lock: The supervision lock, which is handed over: the supervisor holds it for as long as it lives,
    ///   and this process no longer.
    static func start(
        charge: Charge,
        location: ClusterLocation,
        account: ServerAccount,
        stopLimit: Duration,
        lock: consuming FileLock
    ) async throws -> Supervisor {
        let words = ["/bin/sh"] + arguments(charge: charge, location: location, stopLimit: stopLimit)
        let command = try await AccountSwitch.command(words, as: account)
        return try Supervisor(command, location: location, lock: lock)
    }

    private init(_ command: AccountSwitch.Command, location: ClusterLocation, lock: consuming FileLock) throws {
        let pipe = try PrivateFiles.perform("pipe", location.root) { try LifePipe() }
        let log = try PrivateFiles.perform("open", location.startLog) {
            try FileDescriptor.open(
                location.startLog,
                .writeOnly,
                options: [.create, .truncate, .append, .noFollow, .closeOnExec],
                permissions: [.ownerReadWrite, .groupRead, .otherRead]
            )
        }
        let configuration = PostgresTool.configuration(command)
        let outcome = Outcome()
        let handover = Handover(lock: lock)
        self.pipe = pipe
        self.outcome = outcome
        self.end = Task { [readEnd = pipe.readEnd] in
            do {
                let result = try await Subprocess.run(
                    configuration,
                    input: .fileDescriptor(readEnd, closeAfterSpawningProcess: true),
                    output: .fileDescriptor(handover.descriptor, closeAfterSpawningProcess: false),
                    error: .fileDescriptor(log, closeAfterSpawningProcess: true)
                ) { _ in
                    handover.finish()
                }
                outcome.set(End(result.terminationStatus))
            } catch {
                outcome.set(End(text: "not started: \(error)", isKill: false))
            }
        }
    }

    /// How it ended; nil while it is alive.
    var ended: End? { outcome.value }

    /// Makes it stop the server: fast at first, and without the final checkpoint after the limit.
    func hangUp() { pipe.hangUp() }

    /// Waits until it has ended, which it does after its server.
    func waitUntilEnded() async { await end.value }

    /// The same, but for no longer than `limit`.
    func waitUntilEnded(limit: Duration) async {
        let deadline = ContinuousClock.now + limit
        while ended == nil, ContinuousClock.now < deadline {
            // A cancelled caller stops waiting early, which a limit has to allow for anyway.
            guard (try? await Task.sleep(for: Launch.pollInterval)) != nil else { return }
        }
    }
}

extension Supervisor {
    /// How a server, or the shell that looks after it, has ended.
    struct End: Sendable {
        /// The status as text for the user.
        let text: String
        /// Whether it was killed (SIGKILL). A process that aborts by itself does not count.
        let isKill: Bool

        init(text: String, isKill: Bool) {
            self.text = text
            self.isKill = isKill
        }

        init(_ status: TerminationStatus) {
            text = "\(status)"
            isKill =
                switch status {
                case .exited(let code): code == 128 + SIGKILL  // what a shell makes of the end of its child
                case .signaled(let signal): signal == SIGKILL
                }
        }
    }

    /// How the process ended, once it has.
    private final class Outcome: Sendable {
        private let end = Mutex<End?>(nil)
        var value: End? { end.withLock { $0 } }
        func set(_ value: End) { end.withLock { $0 = value } }
    }

    /// This process's hold on the supervision lock, until the supervisor has it.
    private final class Handover: Sendable {
        private let lock: Mutex<FileLock?>
        let descriptor: FileDescriptor

        init(lock: FileLock) {
            self.descriptor = lock.descriptor
            self.lock = Mutex(lock)
        }

        func finish() { lock.withLock { $0 = nil } }
    }
}

extension Supervisor {
    /// The name of the shell process in its arguments.
    private static let name = "muster-postgres"

    /// Whether a process that was started by these words is a supervisor, or its watcher, of the server in a data directory.
    static func isOne(startedBy words: [String], for dataDirectory: FilePath) -> Bool {
        guard let place = words.firstIndex(of: name) else { return false }
        return words.dropFirst(place + 2).first == dataDirectory.string
    }

    /// The arguments of `sh`.
    private static func arguments(charge: Charge, location: ClusterLocation, stopLimit: Duration) -> [String] {
        let limit = "\(max(1, stopLimit.components.seconds))"
        let common = [limit, location.dataDirectory.string]
        switch charge {
        case .start(let program, let arguments):
            return ["-c", prologue + startScript + watchScript + waitScript, name] + common
                + [program.string] + arguments
        case .adopt(let processID):
            return ["-c", prologue + adoptScript + watchScript + pollScript, name] + common
                + ["\(processID)"]
        }
    }

    /// Descriptor 3 becomes the pipe from the parent, 4 the supervision lock. The server gets neither.
    private static let prologue = """
        exec 3<&0 4>&1 </dev/null >&2
        limit=$1 data=$2
        shift 2

        """

    /// The server is a child, so that its id stays its own until `wait` has returned.
    private static let startScript = """
        "$@" 3<&- 4>&- &
        server=$!
        alive() { kill -0 "$server" 2>/dev/null; }

        """

    /// The server is not a child here. Its id is only valid for as long as the data directory names it too.
    private static let adoptScript = """
        server=$1
        alive() {
            kill -0 "$server" 2>/dev/null && read -r holder 2>/dev/null <"$data/postmaster.pid" &&
                [ "$holder" = "$server" ]
        }

        """

    /// Waits for the parent's end, then stops the server: SIGINT is the fast shutdown, SIGQUIT the immediate one. A watcher
    /// that is killed is replaced.
    private static let watchScript = """
        watch() {
            (
                # What it starts keeps nobody's disk busy: the last of it may outlive the server by a second.
                cd /
                exec >/dev/null 2>&1
                while read -r line <&3; do :; done
                alive && kill -INT "$server"
                waited=0
                while alive && [ "$waited" -lt "$limit" ]; do
                    sleep 1 3<&- 4>&-
                    waited=$((waited + 1))
                done
                alive && kill -QUIT "$server"
            ) &
            watcher=$!
        }
        is_watched() { kill -0 "$watcher" 2>/dev/null; }
        watch

        """

    /// The end of any child raises SIGCHLD, which ends a `wait` with 128 plus the number of that signal.
    private static let waitScript = """
        trap : CHLD
        while :; do
            wait "$server"
            status=$?
            alive || break
            is_watched || watch
        done
        [ "$status" -ne \(128 + SIGCHLD) ] || { wait "$server"; status=$?; }
        kill "$watcher" 2>/dev/null
        exit "$status"
        """

    private static let pollScript = """
        while alive; do
            is_watched || watch
            sleep 1 3<&- 4>&-
        done
        kill "$watcher" 2>/dev/null
        exit 0
        """
}
