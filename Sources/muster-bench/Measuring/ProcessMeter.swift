import Glibc
import MusterTestSupport
import SystemPackage

/// Files of `/proc`, whose size is not known before they are read.
enum ProcFile {
    /// The lines of a file; none when it does not exist, as when its process has ended.
    static func lines(_ path: String) -> [Substring] {
        guard let descriptor = try? FileDescriptor.open(FilePath(path), .readOnly, options: .closeOnExec) else {
            return []
        }
        let text = try? descriptor.closeAfter {
            var bytes: [UInt8] = []
            var buffer = [UInt8](repeating: 0, count: 64 * 1_024)
            while true {
                let count = try buffer.withUnsafeMutableBytes { try descriptor.read(into: $0) }
                guard count > 0 else { return String(decoding: bytes, as: UTF8.self) }
                bytes += buffer[..<count]
            }
        }
        return (text ?? "").split(separator: "\n")
    }
}

/// The CPU time of a process so far.
struct ProcessTimes: Sendable, Hashable {
    /// Its own seconds, in user and system mode together.
    var own: Double
    /// Seconds of its descendants that have ended and were waited for.
    var children: Double

    /// The times of a process; `nil` when it does not exist. `self` is this process.
    init?(of process: String) {
        guard let line = ProcFile.lines("/proc/\(process)/stat").first else { return nil }
        self.init(stat: line, ticksPerSecond: Double(sysconf(Int32(_SC_CLK_TCK))))
    }

    /// The times in a line of `/proc/PID/stat`, whose second field is a name that may contain blanks and parentheses.
    init?(stat line: Substring, ticksPerSecond: Double) {
        guard let end = line.lastIndex(of: ")") else { return nil }
        let fields = line[line.index(after: end)...].split(separator: " ")
        let ticks = (11...14).compactMap { fields.indices.contains($0) ? Double(fields[$0]) : nil }
        guard ticks.count == 4, ticksPerSecond > 0 else { return nil }
        own = (ticks[0] + ticks[1]) / ticksPerSecond
        children = (ticks[2] + ticks[3]) / ticksPerSecond
    }
}

/// Measures what named processes and their descendants use.
struct ProcessMeter: Sendable {
    /// The processes that are measured, with their names in reports.
    var roots: [(name: String, processID: Int32)] = []

    /// Seconds of CPU so far, by name, including those of descendants that have ended.
    func cpuSeconds() -> [String: Double] {
        var seconds: [String: Double] = [:]
        for (name, root) in roots {
            for process in [root] + ProcessTree.descendants(of: root) {
                guard let times = ProcessTimes(of: "\(process)") else { continue }
                seconds[name, default: 0] += times.own + times.children
            }
        }
        return seconds
    }

    /// Resets the peaks of memory.
    func resetPeaks() {
        for (_, root) in roots {
            // Without the permission for that, the peak is that of the whole life of the process.
            guard
                let file = try? FileDescriptor.open(
                    FilePath("/proc/\(root)/clear_refs"), .writeOnly, options: .closeOnExec)
            else { continue }
            _ = try? file.closeAfter { try file.writeAll("5".utf8) }
        }
    }

    /// The peak of resident memory in MiB, by name; the largest for a name with several processes. PostgreSQL is left out: its processes
    /// share most of their memory.
    func peakMebibytes() -> [String: Double] {
        var peaks: [String: Double] = [:]
        for (name, root) in roots where name != "postgres" {
            guard let peak = Self.peakMebibytes(of: root) else { continue }
            peaks[name] = max(peak, peaks[name] ?? 0)
        }
        return peaks
    }

    /// The peak of one process; `nil` when it has ended.
    static func peakMebibytes(of process: Int32) -> Double? {
        let line = ProcFile.lines("/proc/\(process)/status").first { $0.hasPrefix("VmHWM:") }
        let words = line?.split(whereSeparator: { $0 == " " || $0 == "\t" }) ?? []
        return words.count > 1 ? Double(words[1]).map { $0 / 1_024 } : nil
    }

    /// What was used between two readings, by name.
    static func difference(_ after: [String: Double], _ before: [String: Double]) -> [String: Double] {
        after.reduce(into: [:]) { $0[$1.key] = max($1.value - (before[$1.key] ?? 0), 0) }
    }
}
