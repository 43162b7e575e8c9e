import FoundationEssentials
import Testing

@testable import muster_bench

@Suite struct ReportTests {
    private static let report: BenchReport = {
        let muster = Row(
            subject: "muster", role: .muster,
            samples: [
                Sample(
                    value: 900, cpuSeconds: ["worker": 1.5, "postgres": 0.5, "origin": 0.25],
                    peakMebibytes: ["worker": 41],
                    facts: ["WAL KiB/file": 1.4])
            ])
        let peer = Row(subject: "aria2c -j16 <&>", role: .peer, samples: [Sample(value: 300)])
        let floor = Row(subject: "bare loop", role: .floor, samples: [Sample(value: 1_800)])
        let section = Section(
            name: "small", title: "60 files of 16 KiB", unit: "files/s", better: .higher,
            rows: [muster, peer, floor], notes: ["axel is not installed"])
        return BenchReport(
            beganAt: 1_800_000_000, build: .release,
            machine: .init(cores: 2, memoryMebibytes: 4_096, kernel: "Linux 6.1", fileSystem: "ext4"),
            sections: [section])
    }()

    @Test func tableShowsMediansRatiosCostsAndNotes() {
        let expected = """
            2 cores, 4.00 GiB, ext4, Linux 6.1, release build

            ## 60 files of 16 KiB

            | subject | files/s | min–max | CPU s | times as good as |
            | --- | --- | --- | --- | --- |
            | muster | 900 | 900–900 | 2.00 | 3.00 × aria2c -j16 <&>, 0.500 × bare loop |
            | aria2c -j16 <&> | 300 | 300–300 | – | – |
            | bare loop (floor) | 1,800 | 1,800–1,800 | – | – |

            - muster: CPU s: origin 0.250, postgres 0.500, worker 1.50; peak MiB: worker 41.0; WAL KiB/file 1.40
            - axel is not installed

            """
        let lines = ReportTable.text(Self.report).split(separator: "\n", omittingEmptySubsequences: false)
        // Column widths don't matter: the words of each line are compared in order.
        func words(_ line: Substring) -> [Substring] { line.split(whereSeparator: { " -|".contains($0) }) }
        #expect(lines.map(words) == expected.split(separator: "\n", omittingEmptySubsequences: false).map(words))
        let widths = Set(lines.filter { $0.hasPrefix("|") }.map(\.count))
        #expect(widths.count == 1, "columns are aligned")
    }

    @Test func jsonOfAReportSurvives() throws {
        let text = try Self.report.json()
        #expect(try JSONDecoder().decode(BenchReport.self, from: Data(text.utf8)) == Self.report)
        struct Shape: Decodable {
            struct Machine: Decodable { var cores: Int }
            struct Section: Decodable {
                struct Row: Decodable {
                    var subject: String
                    var role: String
                    var values: [Double]
                    var cpuSeconds: [String: Double]
                    var facts: [String: Double]
                }
                var name: String
                var unit: String
                var better: String
                var rows: [Row]
                var notes: [String]
            }
            var build: String
            var machine: Machine
            var sections: [Section]
        }
        let shape = try JSONDecoder().decode(Shape.self, from: Data(text.utf8))
        #expect(shape.build == "release" && shape.machine.cores == 2)
        let section = try #require(shape.sections.first)
        #expect(section.name == "small" && section.unit == "files/s" && section.better == "higher")
        #expect(section.rows.map(\.role) == ["muster", "peer", "floor"])
        #expect(section.rows[0].values == [900] && section.rows[0].facts == ["WAL KiB/file": 1.4])
    }

    @Test func mergedReportSaysWhereTheReportsDiffer() throws {
        var other = Self.report
        other.machine.fileSystem = "tmpfs"
        let merged = try #require(BenchReport.merged([Self.report, Self.report, other]))
        #expect(
            merged.sections.map(\.title) == [
                "60 files of 16 KiB", "60 files of 16 KiB", "60 files of 16 KiB (\(other.circumstances))",
            ])
        #expect(merged.circumstances == Self.report.circumstances)
        #expect(BenchReport.merged([]) == nil)
    }

    @Test func plotHasABarForEachSubjectAndEscapesNames() throws {
        let svg = ReportPlot.svg(Self.report)
        #expect(svg.hasPrefix("<svg xmlns=\"http://www.w3.org/2000/svg\""))
        // Three bars and the background.
        #expect(svg.split(separator: "<rect ").count - 1 == 4)
        #expect(svg.contains("aria2c -j16 &lt;&amp;&gt;") && !svg.contains("<&>"))
        #expect(svg.contains("1,800"))
        #expect(svg.hasSuffix("</svg>\n"))
    }

    @Test func plotOfNothingIsStillAPicture() {
        var report = Self.report
        report.sections = [
            Section(
                name: "x", title: "X", unit: "s", better: .lower,
                rows: [Row(subject: "muster", role: .muster, samples: [])], notes: [])
        ]
        #expect(ReportPlot.svg(report).contains("–"))
        #expect(!ReportPlot.svg(report).contains("nan"))
    }
}
