import Subprocess
import Synchronization
import SystemPackage

/// Runs programs as another account.
///
/// A small program of the system switches the account and then executes the wanted program, which thus keeps the process
/// id. Subprocess could switch it as well, but between `clone` and `execve` it calls `setgroups` and `setuid`, which in
/// glibc wait for threads that the new process does not have: in a process with many threads that hangs now and then.
enum AccountSwitch {
    /// A program and its arguments.
    struct Command: Sendable, Hashable {
        let program: FilePath
        let arguments: [String]
    }

    /// The command that runs `words`, a program by its path and its arguments, as an account; nil is the current user.
    static func command(_ words: [String], as account: ServerAccount?) async throws -> Command {
        guard let account, account.needsSwitch else { return Command(words) }
        return Command(try await prefix(for: account) + words)
    }

    /// The prefixes that work here. They stay valid for as long as this process lives.
    private static let known = Mutex<[ServerAccount: [String]]>([:])

    private static func prefix(for account: ServerAccount) async throws -> [String] {
        if let prefix = known.withLock({ $0[account] }) { return prefix }
        let prefix = try await findPrefix(for: account)
        known.withLock { $0[account] = prefix }
        return prefix
    }

    /// The first of the known programs that works here. A program that is only present may be the reduced version of a
    /// small system.
    private static func findPrefix(for account: ServerAccount) async throws -> [String] {
        let (user, group) = (account.userID, account.groupID)
        let candidates = [
            ["setpriv", "--reuid=\(user)", "--regid=\(group)", "--clear-groups", "--"],
            ["chroot", "--userspec=\(user):\(group)", "--groups=", "/"],
            ["su-exec", "\(user):\(group)"],
            ["gosu", "\(user):\(group)"],
        ]
        for candidate in candidates {
            for directory in ["/usr/bin", "/usr/sbin", "/bin", "/sbin", "/usr/local/bin", "/usr/local/sbin"] {
                let program = FilePath(directory).appending(candidate[0])
                guard PrivateFiles.isExecutable(program) else { continue }
                let prefix = [program.string] + candidate.dropFirst()
                let check = ["/bin/sh", "-c", "[ \"$(id -u)\" = \(user) ]"]
                if try await succeeds(Command(prefix + check)) { return prefix }
            }
        }
        throw EmbeddedPostgresError.noAccountSwitch(programs: candidates.map { $0[0] })
    }

    private static func succeeds(_ command: Command) async throws -> Bool {
        try PostgresTool.checkRoom(for: command.program)
        do {
            let result = try await Subprocess.run(
                PostgresTool.configuration(command),
                output: .discarded,
                error: .discarded
            )
            return result.terminationStatus.isSuccess
        } catch let error as SubprocessError {
            throw EmbeddedPostgresError.launchFailed(program: command.program.string, reason: "\(error)")
        }
    }
}

extension AccountSwitch.Command {
    init(_ words: [String]) {
        self.init(program: FilePath(words[0]), arguments: Array(words.dropFirst()))
    }
}
