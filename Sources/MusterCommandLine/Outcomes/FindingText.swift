import MusterAPI
import MusterCore

/// Words for what a check has found, and for what to do about it.
enum FindingText {
    /// What it is, in a word or two.
    static func title(_ kind: FindingKind) -> String {
        switch kind {
        case .rows: "rows"
        case .fileMissing: "missing"
        case .fileChanged: "changed"
        case .fileUnreadable: "unreadable"
        case .fileWritten: "written to"
        case .fileForeign: "other mark"
        case .partMissing: "part missing"
        case .partShort: "part short"
        case .partUnknown: "part unknown"
        case .sessionUnknown: "session over"
        case .installationForeign: "foreign"
        }
    }

    /// What is to be done about findings of a kind that are left as they are.
    ///
    /// - Parameter isRepair: whether the check was to repair what is safe.
    static func advice(_ kind: FindingKind, isRepair: Bool) -> String {
        switch kind {
        case .rows:
            isRepair
                ? "these rows are left as they are: restore a backup, or report this with the output of --json"
                : "muster fsck --repair counts groups anew (I6); other rows are left as they are"
        case .fileMissing:
            isRepair
                ? "the group is cancelled or removed, or another task has the path: add the file anew"
                : "muster fsck --repair fetches it again, in the next generation of its group"
        case .fileChanged:
            isRepair
                ? "another program has written there: move the file away, then muster fsck --repair fetches it again"
                : "muster fsck --repair fetches it again, unless another program has written to it"
        case .fileUnreadable: "let the workers read it, or move away what is in its way, then run muster fsck again"
        case .fileWritten: "muster fsck --deep compares the content"
        case .fileForeign: "nothing: a check never changes the file"
        case .partMissing, .partShort:
            isRepair
                ? "it is being fetched, and the worker notices by itself; run muster fsck again later"
                : "muster fsck --repair begins the file anew; otherwise that happens when it is put in place"
        case .partUnknown, .sessionUnknown:
            isRepair ? "it has an owner again; run muster fsck again" : "muster fsck --repair has it deleted"
        case .installationForeign: "nothing: this installation never touches it"
        }
    }

    /// The outcome of a finding, for the table.
    static func outcome(_ finding: FindingDocument) -> String {
        finding.isNote ? "note" : finding.outcome == "found" ? "left" : finding.outcome
    }

    /// One line that says what was looked at, and how much was found.
    static func summary(_ check: CheckDocument) -> String {
        let files = check.sinks.reduce(0) { $0 + $1.files }
        let parts = check.sinks.reduce(0) { $0 + $1.parts }
        let read = ByteCount(bytes: check.sinks.reduce(0) { $0 + $1.bytes })
        let unproven = check.sinks.reduce(0) { $0 + $1.unproven }
        var looked = "\(count(files, "file"))\(check.deep ? " (\(read) read)" : ""), \(count(parts, "part"))"
        if unproven > 0 { looked += "; \(count(unproven, "file")) without a known checksum" }
        if check.state == "stopped" { return "stopped by another command after \(looked)" }
        let sinks = check.sinks.map(\.name).joined(separator: ", ")
        var found: [String] = []
        if check.found > 0 { found.append("\(check.found) left") }
        if check.repaired > 0 { found.append("\(check.repaired) repaired") }
        if check.notes > 0 { found.append(count(check.notes, "note")) }
        return "checked \(sinks.isEmpty ? "the database" : sinks): \(looked): "
            + (found.isEmpty ? "nothing found" : found.joined(separator: ", "))
    }

    /// Which check has ended, with its options, and how.
    static func end(_ check: CheckDocument, clock: WallClock) -> String {
        let options = CheckRequest(deep: check.deep, repair: check.repair, sinks: check.sinks.map(\.name)).options
        let name = "check \(check.id)\(options.isEmpty ? "" : " (\(options))")"
        let end = check.state == "stopped" ? "is stopped" : "had ended by itself"
        return "\(name), begun \(clock.distance(check.begunAt)), \(end)"
    }

    /// How far a check is: a line for each sink that is not done, and one for the database.
    static func progress(_ check: CheckDocument) -> [String] {
        let rows = check.rowsDone ? [] : ["the database: looking at its rows"]
        return rows
            + check.sinks.filter { $0.phase != "done" }.map { sink in
                let read = check.deep ? ", \(ByteCount(bytes: sink.bytes)) read" : ""
                let place =
                    switch sink.phase {
                    case "files": "\(count(sink.files, "file"))\(read)"
                    case "parts": "\(count(sink.parts, "part"))"
                    default: "names"
                    }
                return "\(sink.name): \(place)\(sink.worker.map { ", by \($0)" } ?? ", waiting for a worker")"
            }
    }

    private static func count(_ number: Int64, _ noun: String) -> String {
        "\(number) \(noun)\(number == 1 ? "" : "s")"
    }
}
