import FoundationEssentials
import Glibc
import SystemPackage

/// Processes and their descendants, from `/proc`. On systems without it none are found, and process groups have to do.
public enum ProcessTree {
    /// The ids of all living descendants, in no order.
    public static func descendants(of ancestor: Int32) -> [Int32] {
        var children: [Int32: [Int32]] = [:]
        for (process, parent) in parents() { children[parent, default: []].append(process) }
        var found: [Int32] = []
        var open = [ancestor]
        while let next = open.popLast() {
            let below = children[next] ?? []
            found += below
            open += below
        }
        return found
    }

    /// The words of a process's command line; empty when there is no such process (or it has ended, and was not
    /// waited for).
    public static func commandLine(of process: Int32) -> [String] {
        guard let text = read("/proc/\(process)/cmdline") else { return [] }
        return text.split(separator: "\0", omittingEmptySubsequences: true).map(String.init)
    }

    /// The effective user id of a process; nil when there is no such process.
    public static func userID(of process: Int32) -> UInt32? {
        guard let text = read("/proc/\(process)/status") else { return nil }
        let line = text.split(separator: "\n").first { $0.hasPrefix("Uid:") }
        let words = line?.split(whereSeparator: \.isWhitespace) ?? []
        return words.count > 2 ? UInt32(words[2]) : nil
    }

    /// How many bytes a process has written so far, to files and pipes but not to sockets; nil when there is no such process.
    public static func bytesWritten(by process: Int32) -> Int64? {
        guard let text = read("/proc/\(process)/io") else { return nil }
        let line = text.split(separator: "\n").first { $0.hasPrefix("wchar:") }
        return line?.split(separator: " ").last.flatMap { Int64($0) }
    }

    /// What each thread of a process does, in a line each: its name, its state, and the place in the kernel where it waits. For failures.
    public static func threads(of process: Int32) -> String {
        let tasks = "/proc/\(process)/task"
        let threads = (try? FileManager.default.contentsOfDirectory(atPath: tasks)) ?? []
        return threads.sorted().compactMap { thread in
            guard let text = read("\(tasks)/\(thread)/stat"), let start = text.firstIndex(of: "("),
                let end = text.lastIndex(of: ")")
            else { return nil }
            let state = text[text.index(after: end)...].split(separator: " ").first ?? "?"
            return "\(text[text.index(after: start)..<end]) \(state) \(read("\(tasks)/\(thread)/wchan") ?? "?")"
        }.joined(separator: "\n")
    }

    /// Whether a process exists and has not ended.
    public static func isAlive(_ process: Int32) -> Bool {
        guard let state = statFields(of: process)?.first else { return false }
        return state != "Z" && state != "X"
    }

    /// Kills a process and all of its descendants (SIGKILL), and waits for their end.
    public static func kill(_ process: Int32) async throws {
        // Stopped first, so that it starts no process while the list is made.
        _ = Glibc.kill(process, SIGSTOP)
        let all = [process] + descendants(of: process)
        for one in all { _ = Glibc.kill(one, SIGKILL) }
        for one in all { try await waitForEnd(of: one) }
    }

    /// Waits for the end of a process that is not a child of this process, and whose end therefore causes no signal here.
    public static func waitForEnd(of process: Int32, limit: Duration = TimedOut.defaultLimit) async throws {
        let deadline = ContinuousClock.now + limit
        while isAlive(process) {
            guard ContinuousClock.now < deadline else {
                let details = commandLine(of: process).joined(separator: " ")
                throw TimedOut(what: "the end of process \(process)", limit: limit, details: details)
            }
            try await Task.sleep(for: .milliseconds(20))
        }
    }

    private static func parents() -> [(process: Int32, parent: Int32)] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
        return names.compactMap { Int32($0) }.compactMap { process in
            guard let fields = statFields(of: process), fields.count > 1, let parent = Int32(fields[1]) else {
                return nil
            }
            return (process, parent)
        }
    }

    /// The fields after the program's name, which may hold blanks and parentheses: state, parent, …
    private static func statFields(of process: Int32) -> [Substring]? {
        guard let text = read("/proc/\(process)/stat"), let end = text.lastIndex(of: ")") else { return nil }
        return text[text.index(after: end)...].split(separator: " ")
    }

    /// A process may end at any moment, so a failure means that the process is gone.
    private static func read(_ path: String) -> String? {
        guard let descriptor = try? FileDescriptor.open(FilePath(path), .readOnly, options: .closeOnExec) else {
            return nil
        }
        return try? descriptor.closeAfter {
            var buffer = [UInt8](repeating: 0, count: 64 * 1024)
            let count = try buffer.withUnsafeMutableBytes { try descriptor.read(into: $0) }
            return String(decoding: buffer[..<count], as: UTF8.self)
        }
    }
}
