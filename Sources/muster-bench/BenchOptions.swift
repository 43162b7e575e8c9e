import ArgumentParser
import FoundationEssentials
import MusterTestSupport
import SystemPackage

/// Options of every benchmark.
struct BenchOptions: ParsableArguments {
    @Option(help: ArgumentHelp("The muster executable. (default: the one beside this program)", valueName: "path"))
    var muster: String?

    @Flag(help: "Everything as small as it can be, and nothing flushed to storage: seconds, to see that it works.")
    var quick = false

    @Option(help: ArgumentHelp("How often everything is measured. (default: 3, with --quick 1)", valueName: "n"))
    var rounds: Int?

    @Option(help: ArgumentHelp("How often everything is done before that, without counting.", valueName: "n"))
    var warmUps = 1

    @Option(
        help: ArgumentHelp(
            "Where files are served from and written to: ext4, tmpfs (/dev/shm) or what is to be measured.",
            valueName: "dir"))
    var directory = "/tmp"

    @Option(help: ArgumentHelp("Write the report there as JSON.", valueName: "file"))
    var json: String?

    @Option(help: ArgumentHelp("Draw the report there as SVG.", valueName: "file"))
    var svg: String?

    func validate() throws {
        if let rounds, !(1...1_000).contains(rounds) { throw ValidationError("--rounds is 1 to 1000") }
        guard (0...1_000).contains(warmUps) else { throw ValidationError("--warm-ups is 0 to 1000") }
    }

    /// The circumstances that the options describe.
    func bench() throws -> Bench {
        let program = try muster.map { FilePath($0) } ?? TestProcess.musterExecutable()
        let own = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        return Bench(
            muster: program, own: FilePath(own), rounds: rounds ?? (quick ? 1 : 3), warmUps: warmUps, isQuick: quick,
            place: FilePath(directory))
    }

    /// Measures, prints the tables, and writes the requested files.
    func report(_ measure: (Bench) async throws -> [Section]) async throws {
        let bench = try bench()
        var report = BenchReport(
            beganAt: Int64(Date().timeIntervalSince1970), build: .own, isQuick: bench.isQuick,
            machine: .own(place: bench.place))
        report.sections = try await measure(bench)
        print(ReportTable.text(report))
        if let json { try Bench.write(try report.json().utf8, to: FilePath(json)) }
        if let svg { try Bench.write(ReportPlot.svg(report).utf8, to: FilePath(svg)) }
    }
}

/// A command that measures something.
protocol Benchmark: AsyncParsableCommand {
    /// The options of every benchmark.
    var common: BenchOptions { get }

    /// Measures, and returns a section for each comparison.
    func measure(_ bench: Bench) async throws -> [Section]
}

extension Benchmark {
    func run() async throws { try await common.report(measure) }
}
