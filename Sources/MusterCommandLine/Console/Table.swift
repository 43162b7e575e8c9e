/// A plain table: a line of headings, a line per row, columns as wide as their widest cell.
///
/// If a table does not fit its terminal, columns without content are left out, and names are shortened in the middle, so that two different names
/// never read the same. If that is not enough, sentences are printed in full on lines of their own below their rows, and then other columns too,
/// the last ones first. Nothing is cut off.
struct Table {
    /// The content of a column. It decides how the column is laid out, and what happens to it if there is little room.
    enum Content: Sendable {
        /// A word or a moment.
        case text
        /// A number, aligned to the right.
        case number
        /// A name, which may be shortened in the middle.
        case name
        /// A sentence or a URL, which may stand below the row.
        case sentence
    }

    /// The heading and the layout of a column.
    struct Column: Sendable {
        /// The text above the cells.
        let heading: String
        /// What the cells hold.
        let content: Content
        /// Whether the column is left out if all of its cells are `-` or empty, since terminals are narrow.
        let isOptional: Bool

        /// A column of words or moments.
        static func text(_ heading: String, isOptional: Bool = false) -> Column {
            Column(heading: heading, content: .text, isOptional: isOptional)
        }

        /// A column of numbers.
        static func number(_ heading: String, isOptional: Bool = false) -> Column {
            Column(heading: heading, content: .number, isOptional: isOptional)
        }

        /// A column of names.
        static func name(_ heading: String, isOptional: Bool = false) -> Column {
            Column(heading: heading, content: .name, isOptional: isOptional)
        }

        /// A column of sentences.
        static func sentence(_ heading: String, isOptional: Bool = false) -> Column {
            Column(heading: heading, content: .sentence, isOptional: isOptional)
        }
    }

    private let columns: [Column]
    private var rows: [[String]] = []

    /// The fewest columns that a name is shortened to.
    private static let leastName = 16
    /// The text between two columns.
    private static let gap = "  "

    /// A table without rows.
    init(_ columns: [Column]) {
        self.columns = columns
    }

    /// Whether there is nothing to show.
    var isEmpty: Bool { rows.isEmpty }

    /// Adds a row; control characters in its cells are escaped.
    mutating func add(_ cells: [String]) {
        rows.append(cells.map { TextWidth.escaped($0) })
    }

    /// The lines, the headings first. They fit `width` if it is given; otherwise they have any length.
    func lines(width: Int? = nil) -> [String] {
        var shown = columns.indices.filter { index in
            !columns[index].isOptional || rows.contains { Self.says($0[index]) }
        }
        var below: [Int] = []
        if let width, !rows.isEmpty, Self.width(of: widths(shown, in: nil)) > width {
            shown.removeAll { index in !rows.contains { Self.says($0[index]) } }
        }
        if let width, Self.width(of: widths(shown, in: width)) > width {
            below = shown.filter { columns[$0].content == .sentence && $0 != shown.first }
            shown.removeAll { below.contains($0) }
            while Self.width(of: widths(shown, in: width)) > width, shown.count > 1 { below.append(shown.removeLast()) }
            below.sort()
        }
        let widths = widths(shown, in: width)
        var fitted = rows
        for (index, width) in zip(shown, widths) {
            let cells = TextWidth.clipped(rows.map { $0[index] }, to: width)
            for row in fitted.indices { fitted[row][index] = cells[row] }
        }
        func line(_ row: [String]) -> String {
            let cells = zip(shown, widths).map { index, width in
                let cell = row[index]
                return columns[index].content == .number
                    ? TextWidth.aligned(cell, to: width) : TextWidth.padded(cell, to: width)
            }
            var line = cells.joined(separator: Self.gap)
            while line.last == " " { line.removeLast() }
            return line
        }
        return [line(columns.map(\.heading))]
            + fitted.flatMap { row in
                [line(row)]
                    + below.filter { Self.says(row[$0]) }.flatMap { index in
                        TextWidth.wrapped(
                            "    \(columns[index].heading.lowercased()): \(row[index])", to: width ?? .max, hanging: 2)
                    }
            }
    }

    /// Whether there is anything in a cell.
    private static func says(_ cell: String) -> Bool { cell != "-" && !cell.isEmpty }

    /// The widths of these columns. Names are narrowed until the row fits, but not below ``leastName``.
    private func widths(_ shown: [Int], in room: Int?) -> [Int] {
        var widths = shown.map { index in
            ([columns[index].heading] + rows.map { $0[index] }).map(TextWidth.columns).max() ?? 0
        }
        guard let room else { return widths }
        let names = shown.indices.filter { columns[shown[$0]].content == .name || shown.count == 1 }
        while Self.width(of: widths) > room, let widest = names.max(by: { widths[$0] < widths[$1] }),
            widths[widest] > (shown.count == 1 ? room : Self.leastName)
        {
            widths[widest] -= 1
        }
        return widths
    }

    private static func width(of widths: [Int]) -> Int {
        widths.reduce(0, +) + max(0, widths.count - 1) * gap.count
    }
}
