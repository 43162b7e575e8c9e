/// A plain table: a line of headings, a line per row, columns as wide as their widest cell.
struct Table {
    /// How a column is laid out.
    enum Alignment: Sendable {
        /// Text.
        case left
        /// Numbers.
        case right
    }

    /// The heading and the layout of a column.
    struct Column: Sendable {
        /// What stands on top.
        let heading: String
        /// Where its cells stand.
        let alignment: Alignment
        /// Whether it is left out where all of its cells are `-` or empty: a terminal is narrow.
        let isOptional: Bool

        /// A column of text.
        static func text(_ heading: String, isOptional: Bool = false) -> Column {
            Column(heading: heading, alignment: .left, isOptional: isOptional)
        }

        /// A column of numbers.
        static func number(_ heading: String, isOptional: Bool = false) -> Column {
            Column(heading: heading, alignment: .right, isOptional: isOptional)
        }
    }

    private let columns: [Column]
    private var rows: [[String]] = []

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

    /// The lines. With a `width` they are cut to it; otherwise nothing is.
    func lines(width: Int? = nil) -> [String] {
        let shown = columns.indices.filter { index in
            !columns[index].isOptional || rows.contains { $0[index] != "-" && !$0[index].isEmpty }
        }
        let all = [columns.map(\.heading)] + rows
        let widths = columns.indices.map { index in all.map { TextWidth.columns($0[index]) }.max() ?? 0 }
        return all.map { row in
            var line = ""
            for index in shown {
                let cell =
                    switch columns[index].alignment {
                    case .left: TextWidth.padded(row[index], to: widths[index])
                    case .right: TextWidth.aligned(row[index], to: widths[index])
                    }
                line += (index == shown.first ? "" : "  ") + cell
            }
            while line.last == " " { line.removeLast() }
            guard let width, TextWidth.columns(line) > width else { return line }
            return TextWidth.prefix(line, width - 1) + "…"
        }
    }
}
