import ArgumentParser
import FoundationEssentials
import SystemPackage

/// `muster-bench show`: tables and a plot of reports that were stored as JSON.
struct ShowCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "show", abstract: "Prints and draws reports that were written with --json, as one.")

    @Option(help: ArgumentHelp("Draw the reports there as SVG.", valueName: "file"))
    var svg: String?

    @Argument(help: ArgumentHelp("Reports of one machine.", valueName: "json"))
    var files: [String]

    func run() async throws {
        let reports = try files.map { file in
            try JSONDecoder().decode(BenchReport.self, from: Data(contentsOf: URL(filePath: file)))
        }
        guard let report = BenchReport.merged(reports) else { throw ValidationError("give at least one report") }
        print(ReportTable.text(report))
        if let svg { try Bench.write(ReportPlot.svg(report).utf8, to: FilePath(svg)) }
    }
}

extension BenchReport {
    /// The sections of several reports in one, under the circumstances of the first. The titles of sections from other circumstances name
    /// these. Nil without reports.
    static func merged(_ reports: [BenchReport]) -> BenchReport? {
        guard var all = reports.first else { return nil }
        let circumstances = all.circumstances
        for report in reports.dropFirst() {
            let isSame = report.circumstances == circumstances
            all.sections += report.sections.map { section in
                var section = section
                if !isSame { section.title += " (\(report.circumstances))" }
                return section
            }
        }
        return all
    }
}
