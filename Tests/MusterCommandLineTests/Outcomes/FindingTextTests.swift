import MusterAPI
import MusterCore
import Testing

@testable import MusterCommandLine

/// What `muster fsck` prints (adr/0048).
@Suite struct FindingTextTests {
    private static func check(_ change: (inout CheckDocument) -> Void = { _ in }) -> CheckDocument {
        var check = CheckDocument(
            id: 3, deep: true, repair: false, state: "finished", begunAt: Timestamp(microseconds: 0))
        check.sinks = [
            .init(
                name: "default", phase: "done", worker: nil, workersReaching: 1, files: 12, parts: 1, bytes: 3 << 30,
                unproven: 0)
        ]
        change(&check)
        return check
    }

    private static func finding(_ kind: FindingKind, _ subject: String, outcome: String = "found") -> FindingDocument {
        var finding = FindingDocument(
            number: 1, kind: kind, outcome: outcome, sink: "default", subject: subject,
            detail: "its CRC32C is 1234abcd instead of 4321dcba")
        finding.group = "nightly"
        return finding
    }

    @Test func summaryTellsWhatWasLookedAt() {
        #expect(FindingText.summary(Self.check()) == "checked default: 12 files (3.0 GiB read), 1 part: nothing found")
        let found = Self.check { ($0.found, $0.repaired, $0.notes) = (2, 1, 1) }
        #expect(FindingText.summary(found).hasSuffix(": 2 left, 1 repaired, 1 note"))
        #expect(
            FindingText.summary(Self.check { $0.state = "stopped" }).hasPrefix(
                "stopped by another command after 12 files"))
    }

    @Test func progressNamesTheWorkerOrThatThereIsNone() {
        let lines = FindingText.progress(
            Self.check { check in
                check.sinks[0].phase = "files"
                check.sinks[0].worker = "rack3"
            })
        #expect(lines == ["the database: looking at its rows", "default: 12 files, 3.0 GiB read, by rack3"])
    }

    @Test func tableFitsAnOrdinaryTerminalAndEachKindHasAnAdvice() {
        let findings = [
            Self.finding(.fileChanged, "a/very/long/path/of/a/file/in/some/directory.tar"),
            Self.finding(.fileMissing, "b", outcome: "repaired"), Self.finding(.installationForeign, "c"),
        ]
        let lines = FsckCommand.table(findings).lines(width: 80)
        #expect(lines.allSatisfy { $0.count <= 80 }, "\(lines)")
        #expect(lines.contains { $0.contains("CRC32C") })
        let advice = FsckCommand.advice(findings, of: Self.check())
        #expect(advice.map { $0.prefix { $0 != ":" } } == ["changed", "foreign"], "what is repaired needs none")
        for kind in FindingKind.allCases {
            #expect(!FindingText.advice(kind, isRepair: true).isEmpty && !FindingText.title(kind).isEmpty)
        }
    }
}
