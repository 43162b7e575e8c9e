import FoundationEssentials
import Glibc

/// The path of a program, nil if it is not installed.
func executable(_ name: String) -> String? {
    ["/usr/sbin/", "/usr/bin/", "/usr/local/sbin/", "/usr/local/bin/"].map { $0 + name }.first { access($0, X_OK) == 0 }
}

/// A folder that other users may read, as servers that change their user must.
struct TemporaryFolder: Sendable {
    let path: String

    init(_ name: String) throws {
        var template = Array("/tmp/muster-\(name)-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { throw SystemFailure(call: "mkdtemp", code: errno) }
        path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        chmod(path, 0o755)
    }

    /// Writes a file, readable by all unless told otherwise.
    func write(_ bytes: some Sequence<UInt8>, to name: String, mode: mode_t = 0o644) throws {
        try Data(bytes).write(to: URL(filePath: path + "/" + name))
        chmod(path + "/" + name, mode)
    }

    func makeFolder(_ name: String, mode: mode_t = 0o755) {
        mkdir(path + "/" + name, mode)
    }

    func remove() {
        try? FileManager.default.removeItem(atPath: path)
    }
}

/// Starts a process in a group of its own, with the given descriptors under the given numbers. Other output is discarded.
func spawn(_ arguments: [String], environment: [String] = [], passing: [(Int32, as: Int32)] = []) throws -> pid_t {
    var actions = posix_spawn_file_actions_t()
    var attributes = posix_spawnattr_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETPGROUP))
    posix_spawnattr_setpgroup(&attributes, 0)
    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0)
    posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0)
    // Duplicated by way of a high number, because dup2 onto itself would leave close-on-exec set.
    for (descriptor, number) in passing {
        let high: Int32 = descriptor == 200 ? 201 : 200
        posix_spawn_file_actions_adddup2(&actions, descriptor, high)
        posix_spawn_file_actions_adddup2(&actions, high, number)
        posix_spawn_file_actions_addclose(&actions, high)
    }
    var argv = arguments.map { strdup($0) } + [nil]
    var envp = environment.map { strdup($0) } + [nil]
    defer { for pointer in argv + envp { free(pointer) } }
    var pid: pid_t = 0
    let code = posix_spawn(&pid, arguments[0], &actions, &attributes, &argv, &envp)
    guard code == 0 else { throw SystemFailure(call: "posix_spawn", code: code) }
    return pid
}

/// Waits for the end of a process; its status as wait(2) gives it.
func waitForEnd(of pid: pid_t) -> Int32 {
    var status: Int32 = 0
    while waitpid(pid, &status, 0) < 0, errno == EINTR {}
    return status
}

/// Runs a program to its end; throws if it fails.
func run(_ arguments: [String]) throws {
    let status = waitForEnd(of: try spawn(arguments))
    guard status == 0 else { throw SystemFailure(call: arguments[0], code: status) }
}

/// Makes `cert.pem` and `key.pem` of a host `localhost`, signed by itself.
func makeCertificate(in directory: String) throws {
    guard let openssl = executable("openssl") else { throw SystemFailure(call: "openssl", code: ENOENT) }
    try run([
        openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
        "-keyout", directory + "/key.pem", "-out", directory + "/cert.pem", "-days", "2",
        "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost",
    ])
}
