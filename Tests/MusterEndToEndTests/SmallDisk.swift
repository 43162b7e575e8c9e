import FoundationEssentials
import Glibc
import MusterTestSupport
import SystemPackage

/// A small file system that can be filled (F9), in a mount namespace that a process of its own holds: nothing is left of it when that process
/// ends, which it does with this object and with the test process.
final class SmallDisk: Sendable {
    /// Where processes of the namespace see it.
    let path: FilePath
    private let holder: TestProcess

    /// Mounts it at an empty directory; nil where this process may not mount.
    static func mount(at path: FilePath, mebibytes: Int) async throws -> SmallDisk? {
        try FileManager.default.createDirectory(atPath: path.string, withIntermediateDirectories: true)
        let script = #"mount -t tmpfs -o size="$1"m,mode=0755 tmpfs "$0" && echo mounted && exec sleep infinity"#
        let holder = try await TestProcess.start(
            "/usr/bin/env",
            arguments: [
                "unshare", "--mount", "--propagation", "private", "sh", "-c", script, path.string, "\(mebibytes)",
            ])
        do {
            try await holder.waitForLine(containing: "mounted", in: .standardOutput)
        } catch is TimedOut where holder.exit != nil {
            return nil
        }
        return SmallDisk(path: path, holder: holder)
    }

    private init(path: FilePath, holder: TestProcess) {
        self.path = path
        self.holder = holder
    }

    /// A program with arguments that enters the namespace and becomes another program.
    var prefix: [String] { ["nsenter", "--target", "\(holder.processID)", "--mount", "--"] }

    /// Where other processes see it.
    var outside: FilePath { FilePath("/proc/\(holder.processID)/root\(path)") }

    /// Fills it to the last byte, with a file of its own.
    func fill() throws { try Self.fill(outside.appending("filler")) }

    /// Deletes that file.
    func empty() throws { try FileManager.default.removeItem(atPath: outside.appending("filler").string) }

    /// Makes a file that fills its file system to the last byte, whatever else is there.
    static func fill(_ path: FilePath) throws {
        let file = try FileDescriptor.open(
            path, .writeOnly, options: [.create, .truncate], permissions: .ownerReadWrite)
        defer { try? file.close() }
        do {
            let page = [UInt8](repeating: 0x6d, count: 4_096)
            while true { try file.writeAll(page) }
        } catch Errno.noSpace {
            return
        }
    }
}
