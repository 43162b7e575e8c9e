/// The bytes that redraw a few lines at the bottom of a terminal in place.
///
/// Nothing is ever drawn over what stands above the region, so that the scrollback stays whole; each redraw is one
/// string, written at once, so that nothing flickers. Pure: it returns what is to be written.
struct LiveRegion {
    /// How many columns each shown line takes.
    private var drawn: [Int] = []
    /// The lines as they were given.
    private var lines: [String] = []

    /// A region of no lines below the cursor.
    init() {}

    /// Whether no lines are shown.
    var isEmpty: Bool { drawn.isEmpty }

    /// Replaces the lines.
    mutating func redraw(_ lines: [String], size: Terminal.Size) -> String {
        // One row is left for the cursor: if the region filled the screen, its top would scroll out of reach.
        let visible = lines.prefix(max(0, size.rows - 1)).map { Self.clipped($0, to: max(1, size.columns - 1)) }
        var text = toTop(columns: size.columns)
        for line in visible { text += line + "\u{1B}[K\n" }
        text += "\u{1B}[J"
        drawn = visible.map { TextWidth.columns(Self.withoutColours($0)) }
        self.lines = lines
        return text
    }

    /// Draws the lines again that `clear` took away for output above them.
    mutating func restore(size: Terminal.Size) -> String { redraw(lines, size: size) }

    /// Leaves the lines where they are, since another process has written below them. The next lines go below that.
    mutating func leave() { drawn = [] }

    /// Takes the lines away; `restore` brings them back.
    mutating func clear(size: Terminal.Size) -> String {
        let text = toTop(columns: size.columns) + "\u{1B}[J"
        drawn = []
        return text
    }

    /// Moves the cursor to the first of the lines. A terminal that became narrower since has wrapped them.
    private func toTop(columns: Int) -> String {
        let rows = drawn.reduce(0) { $0 + max(1, ($1 + columns - 1) / max(1, columns)) }
        return rows == 0 ? "\r" : "\r\u{1B}[\(rows)A"
    }

    /// A line cut at its end; colours take no room and are switched off again.
    private static func clipped(_ line: String, to width: Int) -> String {
        guard TextWidth.columns(withoutColours(line)) > width else { return line }
        var rest = width
        var result = ""
        var isEscape = false
        for character in line {
            if character == "\u{1B}" { isEscape = true }
            if isEscape {
                result.append(character)
                if character == "m" { isEscape = false }
                continue
            }
            let needed = TextWidth.columns(String(character))
            guard needed <= rest else { break }
            rest -= needed
            result.append(character)
        }
        return result + (line.contains("\u{1B}") ? "\u{1B}[0m" : "")
    }

    /// The line without its colour sequences.
    private static func withoutColours(_ line: String) -> String {
        var result = ""
        var isEscape = false
        for character in line {
            if character == "\u{1B}" { isEscape = true }
            if !isEscape { result.append(character) }
            if isEscape, character == "m" { isEscape = false }
        }
        return result
    }
}
