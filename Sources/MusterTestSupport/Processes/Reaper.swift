import Glibc
import Subprocess
import SystemPackage

/// The shell process that cleans up after the test process, however the test process ends: it kills the process groups
/// and removes the directories that it was told of.
///
/// It reads lines from a pipe; the end of the file is the end of the test process.
final class Reaper: Sendable {
    /// An order to the reaper, one line each.
    enum Order: Sendable {
        /// Kill this process group in the end.
        case kill(group: Int32)
        /// The group is gone, and its number may be used again.
        case forgetGroup(Int32)
        /// Remove this directory in the end.
        case remove(FilePath)
        /// The directory was removed.
        case forgetPath(FilePath)
        /// Remove it now, as soon as no PostgreSQL runs in it.
        case removeNow(FilePath)

        /// Paths have no line ends here: this module makes them all.
        var line: String {
            switch self {
            case .kill(let group): "kill \(group)\n"
            case .forgetGroup(let group): "forget-group \(group)\n"
            case .remove(let path): "remove \(path)\n"
            case .forgetPath(let path): "forget-path \(path)\n"
            case .removeNow(let path): "remove-now \(path)\n"
            }
        }
    }

    /// The reaper of this process.
    static let shared = Reaper()

    private let writeEnd: FileDescriptor?
    private let end: Task<Void, Never>?

    private init() {
        // If the reaper is killed, writing to it must not end the test process.
        _ = signal(SIGPIPE, SIG_IGN)
        do {
            let pipe = try CloseOnExecPipe.open()
            var options = PlatformOptions()
            options.createSession = true
            let configuration = Subprocess.Configuration(
                executable: .path("/bin/sh"),
                arguments: ["-c", Self.script, "muster-test-reaper"],
                workingDirectory: "/",
                platformOptions: options
            )
            self.writeEnd = pipe.writeEnd
            self.end = Task {
                do {
                    _ = try await Subprocess.run(
                        configuration,
                        input: .fileDescriptor(pipe.readEnd, closeAfterSpawningProcess: true),
                        output: .discarded,
                        error: .discarded
                    )
                } catch {
                    print("the reaper of this test process failed: \(error)")
                }
            }
        } catch {
            print("the reaper of this test process cannot be started: \(error)")
            self.writeEnd = nil
            self.end = nil
        }
    }

    /// Gives an order. Lines shorter than PIPE_BUF are written whole, even if other processes write too.
    func tell(_ order: Order) {
        do {
            try writeEnd?.writeAll(order.line.utf8)
        } catch {
            print("the reaper of this test process is gone: \(error)")
        }
    }

    private static let script = """
        remove() {
            waited=0
            while [ "$waited" -lt 150 ]; do
                [ -e "$1/state/pg/data/postmaster.pid" ] || break
                sleep 0.2
                waited=$((waited + 1))
            done
            rm -rf -- "$1"
        }
        groups=''
        paths=''
        while read -r order value; do
            case $order in
            kill) groups="$groups $value" ;;
            remove) paths="$paths $value" ;;
            forget-group)
                kept=''
                for group in $groups; do [ "$group" = "$value" ] || kept="$kept $group"; done
                groups=$kept
                ;;
            forget-path | remove-now)
                kept=''
                for path in $paths; do [ "$path" = "$value" ] || kept="$kept $path"; done
                paths=$kept
                [ "$order" = forget-path ] || remove "$value" </dev/null &
                ;;
            esac
        done
        for group in $groups; do kill -s KILL -- "-$group"; done
        for path in $paths; do remove "$path" & done
        wait
        """
}
