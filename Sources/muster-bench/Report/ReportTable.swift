/// The report as text: a Markdown table for each section, with aligned columns, so that it is readable in a terminal too.
enum ReportTable {
    /// All sections.
    static func text(_ report: BenchReport) -> String {
        ([report.circumstances + "\n"] + report.sections.map { text($0) }).joined(separator: "\n")
    }

    /// One section: its title, its table and its notes.
    static func text(_ section: Section) -> String {
        var lines = ["## \(section.title)", ""]
        lines += grid([headings(section)] + section.rows.map { cells($0, in: section) })
        let details = section.rows.compactMap { costs($0) }.map { "- \($0)" }
        let notes = section.notes.map { "- \($0)" }
        if !details.isEmpty || !notes.isEmpty { lines += [""] + details + notes }
        return lines.joined(separator: "\n") + "\n"
    }

    private static func headings(_ section: Section) -> [String] {
        ["subject", section.unit, "min–max", "CPU s", "times as good as"]
    }

    private static func cells(_ row: Row, in section: Section) -> [String] {
        let statistics = row.statistics
        let spread = [statistics.minimum, statistics.maximum].compactMap { $0.map(Figure.text) }
        let ratios = section.comparisons(of: row).map { "\(Figure.text($0.ratio)) × \($0.other)" }
        return [
            row.role == .floor ? "\(row.subject) (floor)" : row.subject,
            statistics.median.map(Figure.text) ?? "–",
            spread.joined(separator: "–"),
            row.ownCPUSeconds.map(Figure.text) ?? "–",
            ratios.isEmpty ? "–" : ratios.joined(separator: ", "),
        ]
    }

    /// The costs of a row in detail; nil when none are known.
    private static func costs(_ row: Row) -> String? {
        var parts: [String] = []
        if row.cpuSeconds.count > 1 { parts.append("CPU s: \(list(row.cpuSeconds))") }
        if !row.peakMebibytes.isEmpty { parts.append("peak MiB: \(list(row.peakMebibytes))") }
        if !row.facts.isEmpty { parts.append(list(row.facts)) }
        return parts.isEmpty ? nil : "\(row.subject): \(parts.joined(separator: "; "))"
    }

    private static func list(_ figures: [String: Double]) -> String {
        figures.sorted { $0.key < $1.key }.map { "\($0.key) \(Figure.text($0.value))" }.joined(separator: ", ")
    }

    private static func grid(_ rows: [[String]]) -> [String] {
        let columns = rows.map(\.count).max() ?? 0
        let widths = (0..<columns).map { column in rows.map { $0[column].count }.max() ?? 0 }
        func line(_ cells: [String]) -> String {
            let padded = zip(cells, widths).map { cell, width in
                cell + String(repeating: " ", count: width - cell.count)
            }
            return "| " + padded.joined(separator: " | ") + " |"
        }
        var lines = rows.map(line)
        lines.insert("|" + widths.map { String(repeating: "-", count: $0 + 2) }.joined(separator: "|") + "|", at: 1)
        return lines
    }
}
