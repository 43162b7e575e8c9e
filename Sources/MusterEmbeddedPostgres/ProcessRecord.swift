import SystemPackage

/// Reads what the system knows about a process.
enum ProcessRecord {
    /// The words of its command line; none when there is no such process.
    static func words(of processID: Int32) throws -> [String] {
        try text("cmdline", of: processID).split(separator: "\0", omittingEmptySubsequences: false).map(String.init)
    }

    /// Whether it is stopped, as by SIGSTOP or a debugger.
    static func isStopped(_ processID: Int32) throws -> Bool {
        // The process's name stands in parentheses before the state, and may contain anything.
        let rest = try text("stat", of: processID).split(separator: ")", omittingEmptySubsequences: false).last ?? ""
        return ["T", "t"].contains(rest.split(separator: " ").first)
    }

    /// A file of `/proc` has no size, so it is read from its start, not by its tail.
    private static func text(_ name: String, of processID: Int32) throws -> String {
        let path = FilePath("/proc/\(processID)/\(name)")
        do {
            let descriptor = try FileDescriptor.open(path, .readOnly, options: .closeOnExec)
            return try descriptor.closeAfter {
                var buffer = [UInt8](repeating: 0, count: 16 * 1024)
                let count = try buffer.withUnsafeMutableBytes { try descriptor.read(into: $0) }
                return String(decoding: buffer[..<count], as: UTF8.self)
            }
        } catch let error as Errno where [.noSuchFileOrDirectory, .noSuchProcess].contains(error) {
            return ""
        } catch let error as Errno {
            throw EmbeddedPostgresError.fileOperation("read", path: path, errno: error)
        }
    }
}
