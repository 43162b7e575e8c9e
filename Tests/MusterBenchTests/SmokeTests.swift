import FoundationEssentials
import MusterTestSupport
import SystemPackage
import Testing

@testable import muster_bench

/// The whole program, with real servers and the peers that are installed.
@Suite(.serialized) struct SmokeTests {
    /// The program is built beside `muster`.
    private static func program() throws -> FilePath {
        try TestProcess.musterExecutable().removingLastComponent().appending("muster-bench")
    }

    @Test func smallFilesAreMeasuredBesideThePeersAndTheFloor() async throws {
        let place = try TemporaryDirectory()
        let json = place.path.appending("report.json")
        let svg = place.path.appending("report.svg")
        let files = place.path.appending("files")
        try Bench.make(files)
        let process = try await TestProcess.start(
            Self.program(),
            arguments: [
                "small", "--quick", "--warm-ups", "0", "--directory", files.string, "--json", json.string, "--svg",
                svg.string,
            ])
        #expect(try await process.waitForExit() == .exited(0), "\(process.standardError)")
        let report = try JSONDecoder().decode(
            BenchReport.self, from: Data(contentsOf: URL(filePath: json.string)))
        let section = try #require(report.sections.first)
        #expect(section.name == "small" && report.sections.count == 1)
        #expect(section.rows.filter { $0.role == .muster }.map(\.subject) == ["muster", "muster, cap 64"])
        #expect(section.rows.filter { $0.role == .floor }.count == 1)
        for row in section.rows {
            #expect(row.values.count == 1 && row.values[0] > 0, "\(row.subject)")
        }
        let muster = section.rows[0]
        #expect(Set(muster.cpuSeconds.keys) == ["client", "coordinator", "origin", "postgres", "worker"])
        #expect(try #require(muster.facts["WAL KiB/file"]) > 0)
        #expect(section.comparisons(of: muster).contains { $0.other == "bare libcurl loop" })
        #expect(process.standardOutput.contains("| muster"))
        let drawn = String(decoding: try Data(contentsOf: URL(filePath: svg.string)), as: UTF8.self)
        #expect(drawn.hasPrefix("<svg"))
        #expect(try FileManager.default.contentsOfDirectory(atPath: files.string).isEmpty, "nothing is left behind")
    }

    @Test(arguments: [
        // A short round trip with little loss; a long path takes a minute.
        (["distance", "--round-trip", "2", "--loss", "1", "--count", "20"], 4), (["sessions"], 1), (["soak"], 1),
        (["backlog"], 1),
    ])
    func benchmarkMeasuresEverySubject(command: [String], sections: Int) async throws {
        let place = try TemporaryDirectory()
        let json = place.path.appending("report.json")
        let process = try await TestProcess.start(
            Self.program(),
            arguments: command + [
                "--quick", "--warm-ups", "0", "--directory", place.path.string, "--json", json.string,
            ])
        #expect(try await process.waitForExit(limit: .seconds(240)) == .exited(0), "\(process.standardError)")
        let report = try JSONDecoder().decode(
            BenchReport.self, from: Data(contentsOf: URL(filePath: json.string)))
        #expect(report.sections.count == sections)
        for row in report.sections.flatMap(\.rows) {
            #expect(!row.values.isEmpty && row.values.allSatisfy { $0 > 0 }, "\(row.subject)")
        }
    }

    @Test func bareLoopFetchesFilesWholeAndInRanges() async throws {
        let place = try TemporaryDirectory()
        let bench = Bench(
            muster: "/nowhere", own: "/nowhere", rounds: 1, warmUps: 0, isQuick: true, place: place.path)
        let files = try await OriginFiles(bench, count: 3, size: 300_001)
        for (ranges, name) in [(1, "whole"), (4, "ranges")] {
            let target = place.path.appending(name)
            try Bench.make(target)
            let list = place.path.appending("\(name).txt")
            try Bench.write(files.urls.joined(separator: "\n").utf8, to: list)
            let arguments = [
                "bare-transfers", "--list", list.string, "--into", target.string, "--connections", "2", "--ranges",
                "\(ranges)", "--size", "300001",
            ]
            _ = try await TimedCommand(program: Self.program(), arguments: arguments).run()
            try Bench.check(target, files: 3, size: 300_001)
            let digests = try files.names.map { try FileDigest.sha256(target.appending($0)) }
            #expect(Set(digests).count == 1, "all files have one content")
            #expect(digests[0] == (try FileDigest.sha256(files.path(files.names[0]))))
        }
    }
}
