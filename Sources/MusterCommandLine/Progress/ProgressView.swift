import MusterAPI
import MusterCore

/// Lays progress out for a terminal: a line for the group, a line for each file under way, and what keeps it from going
/// on. A pure function of a snapshot and a width.
struct ProgressView: Sendable {
    /// What the terminal can show.
    struct Style: Hashable, Sendable {
        /// Whether colours may be used.
        var colour: Bool
        /// Whether it shows more than ASCII.
        var unicode: Bool

        /// The style for a terminal in this environment.
        init(environment: [String: String]) {
            colour = Terminal.allowsColour(environment: environment)
            let locale = ["LC_ALL", "LC_CTYPE", "LANG"].compactMap { environment[$0] }.first { !$0.isEmpty } ?? ""
            unicode = locale.uppercased().contains("UTF-8") || locale.uppercased().contains("UTF8")
        }

        /// A style of its own.
        init(colour: Bool, unicode: Bool) {
            self.colour = colour
            self.unicode = unicode
        }
    }

    /// The style.
    let style: Style

    /// The lines for a terminal of `width` columns.
    func lines(_ snapshot: ProgressSnapshot, width: Int) -> [String] {
        [headline(snapshot, width: width)]
            + snapshot.files.prefix(ProgressSnapshot.shownFiles).map { line($0, width: width) }
            + snapshot.group.notes.map { paint("  note: \(TextWidth.escaped($0))", .yellow) }
    }

    private func headline(_ snapshot: ProgressSnapshot, width: Int) -> String {
        let group = snapshot.group
        let percent = snapshot.percent
        var parts = [
            TextWidth.clipped(TextWidth.escaped(group.name), to: max(8, width / 4)),
            bar(percent.map { Double($0) / 100 }, width: barWidth(width)),
            percent.map { TextWidth.aligned("\($0)%", to: 4) } ?? "    ",
            snapshot.filesText,
            snapshot.bytesText,
        ]
        if group.state.isTerminal {
            parts.append(paint(group.state.rawValue, Self.colour(of: group.state)))
        } else {
            parts.append(ProgressSnapshot.rate(group.bytesPerSecond))
            if let eta = group.etaSeconds { parts.append("ETA \(DurationNotation.format(.seconds(eta)))") }
        }
        parts += snapshot.troubles.map { paint($0, .red) }
        return parts.joined(separator: "  ")
    }

    private func line(_ file: ProgressSnapshot.File, width: Int) -> String {
        let bytes = file.total.map { "\(ByteCount(bytes: file.done))/\(ByteCount(bytes: $0))" }
        let percent = file.total.map { ProgressSnapshot.percent(file.done, of: $0) }
        let facts = [
            bar(percent.map { Double($0) / 100 }, width: barWidth(width)),
            percent.map { TextWidth.aligned("\($0)%", to: 4) } ?? "    ",
            TextWidth.aligned(bytes ?? "\(ByteCount(bytes: file.done))", to: 21),
            file.isFinalizing ? "verifying" : file.bytesPerSecond.map(ProgressSnapshot.rate) ?? "",
        ].joined(separator: "  ")
        let room = max(10, min(48, width - 1 - Self.fixedColumns - barWidth(width)))
        let name = TextWidth.padded(TextWidth.clipped(TextWidth.escaped(file.name), to: room), to: room)
        return "  \(name)  \(facts)"
    }

    /// What a file's line takes besides its name and its bar: margins, the bar's edges, percent, bytes and speed.
    private static let fixedColumns = 2 + 2 + 2 + 2 + 4 + 2 + 21 + 2 + 12

    private func barWidth(_ width: Int) -> Int {
        width >= 120 ? 24 : width >= 80 ? 12 : 6
    }

    private func bar(_ share: Double?, width: Int) -> String {
        let (full, empty, edges) = style.unicode ? ("█", "░", ("▕", "▏")) : ("#", "-", ("[", "]"))
        guard let share else { return edges.0 + String(repeating: style.unicode ? "·" : ".", count: width) + edges.1 }
        let filled = min(width, Int(share * Double(width)))
        return edges.0 + paint(String(repeating: full, count: filled), .green)
            + String(repeating: empty, count: width - filled) + edges.1
    }

    /// Colours by their number in SGR (ECMA-48).
    private enum Colour: Int {
        case red = 31
        case green = 32
        case yellow = 33
    }

    private static func colour(of state: GroupState) -> Colour {
        switch state {
        case .open, .sealed, .cancelled: .yellow
        case .succeeded: .green
        case .failed: .red
        }
    }

    private func paint(_ text: String, _ colour: Colour) -> String {
        style.colour && !text.isEmpty ? "\u{1B}[\(colour.rawValue)m\(text)\u{1B}[0m" : text
    }
}
