import MusterCore

/// How much room a text takes in a terminal, and how it is made fit for one.
enum TextWidth {
    /// The text with every control character and every invisible character escaped, so that a name can't move the cursor, set colours
    /// or pass for another name.
    static func escaped(_ text: String, keepingLineBreaks: Bool = false) -> String {
        InvisibleCharacters.replaced(in: text) { scalar in
            keepingLineBreaks && scalar == "\n" ? "\n" : "\\u{\(String(scalar.value, radix: 16))}"
        }
    }

    /// How many columns the text takes.
    static func columns(_ text: String) -> Int {
        text.reduce(0) { $0 + columns($1) }
    }

    /// The text cut to `width` columns; an ellipsis stands where something is missing in the middle, since the ends of
    /// file names tell most.
    static func clipped(_ text: String, to width: Int) -> String {
        let total = columns(text)
        guard total > width else { return text }
        guard width > 1 else { return width == 1 ? "…" : "" }
        let head = prefix(text, (width - 1) / 2)
        let tail = String(prefix(String(text.reversed()), width - 1 - columns(head)).reversed())
        return head + "…" + tail
    }

    /// Several texts cut to `width` columns. Two different texts stay different, as long as there is room for the part in which they differ.
    static func clipped(_ texts: [String], to width: Int) -> [String] {
        var shown = texts.map { clipped($0, to: width) }
        for (_, alike) in Dictionary(grouping: texts.indices, by: { shown[$0] }) {
            // The text with the longest common beginning is a neighbour in sorted order.
            let sorted = Set(alike.map { texts[$0] }).sorted()
            guard sorted.count > 1 else { continue }
            var own: [String: String] = [:]
            for (index, text) in sorted.enumerated() {
                let neighbours = Array(sorted[max(0, index - 1)...min(sorted.count - 1, index + 1)])
                own[text] = clipped(text, among: neighbours, to: width)
            }
            for index in alike { shown[index] = own[texts[index]] ?? shown[index] }
        }
        return shown
    }

    /// A text cut to `width` columns among others. The part that differs from the others stays, however long the common beginning is.
    static func clipped(_ text: String, among others: [String], to width: Int) -> String {
        let alike = others.lazy.filter { $0 != text }.map { zip($0, text).prefix { $0 == $1 }.count }.max() ?? 0
        let own = String(text.dropFirst(alike))
        let (head, tail) = ((width - 1) / 2, width - 1 - (width - 1) / 2)
        guard width > 4, columns(text) > width, columns(text) - columns(own) >= head, columns(own) > tail else {
            return clipped(text, to: width)
        }
        // At least so many columns of the beginning stay.
        let least = head / 2
        if columns(own) < width - least { return prefix(text, width - 1 - columns(own)) + "…" + own }
        return prefix(text, least) + "…" + prefix(own, max(0, width - 2 - least)) + "…"
    }

    /// The beginning of the text up to the end of a word, in at most `width` columns including the ellipsis that marks the cut.
    static func shortened(_ text: String, to width: Int) -> String {
        guard columns(text) > width else { return text }
        guard width > 1 else { return width == 1 ? "…" : "" }
        let start = prefix(text, width - 1)
        // A word that would be cut is left out, unless it is the only one.
        let words = start.split(separator: " ", omittingEmptySubsequences: false)
        let isWhole = text.dropFirst(start.count).first == " "
        let kept = isWhole || words.count < 2 ? start : words.dropLast().joined(separator: " ")
        return kept.trimmingEnd(" ,;:") + "…"
    }

    /// The text in lines of at most `width` columns, broken between words; a word that is longer is not broken.
    ///
    /// - Parameter hanging: how many columns further in than the first line the other lines begin.
    static func wrapped(_ text: String, to width: Int, hanging: Int = 0) -> [String] {
        let margin = String(repeating: " ", count: text.prefix { $0 == " " }.count + hanging)
        var lines: [String] = []
        var rest = text
        while columns(rest) > width {
            let start = prefix(rest, width)
            let indentation = rest.prefix { $0 == " " }.count
            // The last blank that may end the line: within the characters that fit or directly after them, but not in the margin.
            let fits = Array(rest.prefix(start.count + 1))
            let end =
                fits.indices.last { $0 > indentation && fits[$0] == " " }
                ?? rest.enumerated().first { $0.offset > indentation && $0.element == " " }?.offset
            guard let end else { break }
            lines.append(String(rest.prefix(end)).trimmingEnd(" "))
            let following = rest.dropFirst(end).drop { $0 == " " }
            guard !following.isEmpty else { return lines }
            rest = margin + following
        }
        return lines + [rest]
    }

    /// The text, filled up with blanks at its end to `width` columns.
    static func padded(_ text: String, to width: Int) -> String {
        text + String(repeating: " ", count: max(0, width - columns(text)))
    }

    /// The text, filled up with blanks before it to `width` columns: for numbers.
    static func aligned(_ text: String, to width: Int) -> String {
        String(repeating: " ", count: max(0, width - columns(text))) + text
    }

    /// The beginning of the text that takes at most `width` columns.
    static func prefix(_ text: String, _ width: Int) -> String {
        var rest = width
        var result = ""
        for character in text {
            let needed = columns(character)
            guard needed <= rest else { break }
            rest -= needed
            result.append(character)
        }
        return result
    }

    /// How many columns a character takes: two for the wide characters of East Asia and for emoji, one for all others.
    private static func columns(_ character: Character) -> Int {
        guard let first = character.unicodeScalars.first else { return 0 }
        switch first.value {
        case 0x1100...0x115F, 0x2E80...0x303E, 0x3041...0xA4CF, 0xAC00...0xD7A3, 0xF900...0xFAFF, 0xFE30...0xFE6F,
            0xFF00...0xFF60, 0xFFE0...0xFFE6, 0x1F300...0x1F64F, 0x1F900...0x1F9FF, 0x20000...0x3FFFD:
            return 2
        default:
            return 1
        }
    }
}

extension String {
    /// The text without any of these characters at its end.
    fileprivate func trimmingEnd(_ characters: String) -> String {
        var text = self
        while let last = text.last, characters.contains(last) { text.removeLast() }
        return text
    }
}
