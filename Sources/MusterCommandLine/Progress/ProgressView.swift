import MusterAPI
import MusterCore

/// Lays progress out for a terminal: a line for the group, a line for each file under way, and the reasons for which it does not go on. A
/// pure function of a snapshot and a width.
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

        /// A style with these abilities.
        init(colour: Bool, unicode: Bool) {
            self.colour = colour
            self.unicode = unicode
        }
    }

    /// The style.
    let style: Style

    /// The lines for a terminal of `width` columns: each is shorter than that, so that the terminal cuts none.
    func lines(_ snapshot: ProgressSnapshot, width: Int) -> [String] {
        let room = max(1, width - 1)
        let clock = WallClock.ofThisMachine
        var lines = [headline(snapshot, width: width)]
        let files = snapshot.files.prefix(ProgressSnapshot.shownFiles)
        let names = files.map { TextWidth.escaped($0.name) }
        for (file, name) in zip(files, names) {
            lines.append(line(file, named: name, among: names, width: width))
            if let trouble = file.trouble { lines += self.trouble(trouble, room: room) }
        }
        if snapshot.moreFiles > 0 { lines.append(TextWidth.prefix("  and \(snapshot.moreFiles) more", room)) }
        for note in snapshot.group.notes {
            let text = "note: \(TextWidth.escaped(clock.sentence(note)))"
            lines += TextWidth.wrapped(text, to: room - 2).map { paint("  \($0)", .yellow) }
        }
        return lines
    }

    /// The parts of a line; the first of these cases is left out first when there is no room.
    private enum Importance: Int {
        case name, bar, cancelled, paused, share, speed, time, bytes, retrying, state, percent, failed, files
    }

    private func headline(_ snapshot: ProgressSnapshot, width: Int) -> String {
        let widest = headline(snapshot, nameWidth: max(8, width / 4), barWidth: barWidth(width))
        if widest.columns < width { return widest.text(width: width - 1) }
        return headline(snapshot, nameWidth: max(8, width / 4), barWidth: Self.narrowBar).text(width: width - 1)
    }

    private func headline(_ snapshot: ProgressSnapshot, nameWidth: Int, barWidth: Int) -> FittedLine {
        var line = FittedLine()
        func add(_ text: String, _ importance: Importance, _ colour: Colour? = nil) {
            let painted = colour.map { paint(text, $0) } ?? text
            line.add(painted, columns: TextWidth.columns(text), importance: importance.rawValue)
        }
        let group = snapshot.group
        add(TextWidth.clipped(TextWidth.escaped(group.name), to: nameWidth), .name)
        line.add(
            bar(snapshot.barPercent.map { Double($0) / 100 }, width: barWidth), columns: barWidth + 2,
            importance: Importance.bar.rawValue)
        if let percent = snapshot.percent { add(TextWidth.aligned("\(percent)%", to: 4), .percent) }
        add(snapshot.filesText, .files)
        add(snapshot.bytesText, .bytes)
        if group.state.isTerminal {
            add(group.state.rawValue, .state, Self.colour(of: group.state))
        } else if let speed = snapshot.speedText {
            add(speed, .speed)
            if let eta = group.etaSeconds { add("ETA \(DurationNotation.format(.seconds(eta)))", .time) }
        }
        for trouble in snapshot.troubles { add(trouble.text, Self.importance(of: trouble.kind), .red) }
        return line
    }

    private static func importance(of trouble: ProgressSnapshot.Trouble) -> Importance {
        switch trouble {
        case .failed: .failed
        case .retrying: .retrying
        case .paused: .paused
        case .cancelled: .cancelled
        }
    }

    private func line(
        _ file: ProgressSnapshot.File, named name: String, among names: [String], width: Int
    ) -> String {
        let bytes = file.total.map { "\(ByteCount(bytes: file.done))/\(ByteCount(bytes: $0))" }
        let percent = file.total.map { ProgressSnapshot.percent(file.done, of: $0) }
        // In display order; the name takes the columns that they leave.
        let columns: [(text: String, width: Int, importance: Importance)] = [
            (bar(percent.map { Double($0) / 100 }, width: barWidth(width)), barWidth(width) + 2, .bar),
            (percent.map { TextWidth.aligned("\($0)%", to: 4) } ?? "    ", 4, .share),
            (TextWidth.aligned(bytes ?? "\(ByteCount(bytes: file.done))", to: 21), 21, .bytes),
            (Self.pace(of: file), 12, .speed),
        ]
        var shown = columns
        func room(_ shown: [(text: String, width: Int, importance: Importance)]) -> Int {
            width - 1 - 2 - shown.reduce(0) { $0 + $1.width + FittedLine.gap.count }
        }
        // Drop the bar when a name does not fit: the percentage says the same, and only the name identifies the file.
        if names.contains(where: { TextWidth.columns($0) > room(shown) }) {
            shown.removeAll { $0.importance == .bar }
        }
        while room(shown) < Self.leastName,
            let least = shown.indices.min(by: { shown[$0].importance.rawValue < shown[$1].importance.rawValue })
        {
            shown.remove(at: least)
        }
        let name = TextWidth.clipped(name, among: names, to: max(1, min(Self.longestName, room(shown))))
        return "  "
            + ([TextWidth.padded(name, to: min(Self.longestName, room(shown)))] + shown.map(\.text)).joined(
                separator: FittedLine.gap)
    }

    /// The speed or stage of a file. A file without bytes has no speed: it has just been asked for.
    private static func pace(of file: ProgressSnapshot.File) -> String {
        if file.isFinalizing { return "verifying" }
        guard let speed = file.bytesPerSecond else { return "" }
        return speed == 0 && file.done == 0 ? "asked for" : ProgressSnapshot.rate(speed)
    }

    /// The failure and what happens next: in one line if both fit, otherwise in two.
    private func trouble(_ trouble: TroubleText, room: Int) -> [String] {
        let isShort = TextWidth.columns(trouble.line) <= room - 4
        let lines =
            isShort ? [trouble.line] : [TextWidth.shortened(trouble.reason, to: max(1, room - 4)), trouble.next]
        return lines.map { paint(TextWidth.prefix("    \($0)", room), .yellow) }
    }

    /// The fewest and the most columns of a file's name.
    private static let (leastName, longestName) = (10, 48)
    private static let narrowBar = 6

    private func barWidth(_ width: Int) -> Int {
        width >= 120 ? 24 : width >= 80 ? 12 : Self.narrowBar
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
