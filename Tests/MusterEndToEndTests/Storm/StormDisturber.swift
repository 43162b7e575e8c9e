import MusterTestSupport
import SystemPackage

/// Makes system calls of a worker fail (F9), by libfiu, which takes the place of functions of the C library. Of those that a worker uses for
/// files it has `pwrite`, `fdatasync` and `fsync`, and not `openat`, `syncfs`, `renameat2` and `copy_file_range`.
struct StormDisturber: Sendable {
    /// The beginning of the paths of the pipes on which a worker takes its orders.
    let control: FilePath

    /// Whatever can fail.
    enum Order: String, Sendable {
        /// EIO (5) for one write of fifty.
        case writesFail = "enable_random name=posix/io/rw/pwrite,probability=0.02,failinfo=5"
        /// A third of the writes are shorter than asked for.
        case writesShort = "enable_random name=posix/io/rw/pwrite/reduce,probability=0.3"
        /// EIO for one sync of three.
        case syncsFail = "enable_random name=posix/io/sync/*,probability=0.3,failinfo=5"

        /// The order that ends it.
        var end: String {
            switch self {
            case .writesFail: "disable name=posix/io/rw/pwrite"
            case .writesShort: "disable name=posix/io/rw/pwrite/reduce"
            case .syncsFail: "disable name=posix/io/sync/*"
            }
        }
    }

    /// nil where it is not installed, or does not bear the program.
    static func find(below scratch: FilePath) async throws -> StormDisturber? {
        guard InstalledProgram.find("fiu-run") != nil, InstalledProgram.find("fiu-ctrl") != nil else { return nil }
        let disturber = StormDisturber(control: scratch.appending("fiu"))
        let help = try await TestProcess.start(
            "/usr/bin/env", arguments: disturber.prefix + [try TestProcess.musterExecutable().string, "--help"])
        return try await help.waitForExit() == .exited(0) ? disturber : nil
    }

    /// A program with arguments that becomes a worker that takes orders.
    var prefix: [String] { ["fiu-run", "-x", "-f", control.string] }

    /// Gives an order to a worker, if it lives.
    func send(_ order: String, to worker: TestProcess) async throws {
        let sender = try await TestProcess.start(
            "/usr/bin/env", arguments: ["fiu-ctrl", "-f", control.string, "-c", order, "\(worker.processID)"])
        do {
            let exit = try await sender.waitForExit(limit: .seconds(10))
            guard exit == .exited(0) || worker.exit != nil else {
                throw Unexpected("fiu-ctrl: \(sender.standardError)")
            }
        } catch is TimedOut {
            // The worker was killed in the middle, or is stopped: nobody reads its pipe.
            try await sender.killTree()
        }
    }
}
