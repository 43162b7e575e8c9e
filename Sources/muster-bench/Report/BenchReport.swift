import FoundationEssentials
import SystemPackage

/// Everything that a run measured, and where.
struct BenchReport: Sendable, Hashable, Codable {
    /// The machine that the figures are of.
    struct Machine: Sendable, Hashable, Codable {
        /// Cores that the run could use.
        var cores: Int
        /// Its memory, in MiB.
        var memoryMebibytes: Int
        /// Its kernel.
        var kernel: String
        /// The file system that files were written to.
        var fileSystem: String
    }

    /// How the benchmarked programs were built, judged by the build of this program.
    enum Build: String, Sendable, Hashable, Codable {
        /// Optimized: figures that count.
        case release
        /// Not optimized: only to see that everything works.
        case debug

        /// The build of this program.
        static var own: Build {
            #if DEBUG
            .debug
            #else
            .release
            #endif
        }
    }

    /// When the run began, in seconds since 1970.
    var beganAt: Int64
    /// The build.
    var build: Build
    /// Whether it was a quick run, in which nothing is flushed to storage: its figures mean nothing.
    var isQuick = false
    /// The machine.
    var machine: Machine
    /// What was measured.
    var sections: [Section] = []

    /// The report as JSON, with sorted keys.
    func json() throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        return String(decoding: try encoder.encode(self), as: UTF8.self) + "\n"
    }

    /// One line about the circumstances.
    var circumstances: String {
        let gibibytes = Figure.text(Double(machine.memoryMebibytes) / 1_024)
        return
            "\(machine.cores) cores, \(gibibytes) GiB, \(machine.fileSystem), \(machine.kernel), \(build.rawValue) build"
            + (isQuick ? ", quick: nothing is flushed, and figures mean nothing" : "")
    }
}

extension BenchReport.Machine {
    /// The machine that this process runs on.
    ///
    /// - Parameter place: Where files are written to.
    static func own(place: FilePath) -> BenchReport.Machine {
        let memory = ProcFile.lines("/proc/meminfo").first { $0.hasPrefix("MemTotal:") }
        let kibibytes = memory?.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
        return BenchReport.Machine(
            cores: ProcessInfo.processInfo.activeProcessorCount,
            memoryMebibytes: kibibytes / 1_024,
            kernel: ProcFile.lines("/proc/sys/kernel/osrelease").first.map { "Linux \($0)" } ?? "unknown",
            fileSystem: fileSystem(of: place)
        )
    }

    /// The type of the file system of a directory: that of the longest mount point above it, and of the last one if several are the same.
    private static func fileSystem(of place: FilePath) -> String {
        let words = (try? FileManager.default.destinationOfSymbolicLink(atPath: place.string)) ?? place.string
        var best = (length: -1, type: "unknown")
        for line in ProcFile.lines("/proc/self/mounts") {
            let fields = line.split(separator: " ")
            guard fields.count > 2 else { continue }
            let mount = String(fields[1])
            let isAbove = mount == "/" || words == mount || words.hasPrefix(mount + "/")
            if isAbove, mount.count >= best.length { best = (mount.count, String(fields[2])) }
        }
        return best.type
    }
}
