/// The report as a picture: a bar for each subject, as long as its median, with a whisker from the minimum to the maximum.
struct ReportPlot {
    private static let width = 900.0
    private static let labelWidth = 260.0
    private static let figureWidth = 130.0
    private static let rowHeight = 22.0
    private static let titleHeight = 44.0

    private var body = ""
    private var y = 16.0

    /// The picture of a report, as SVG 1.1 without external resources.
    static func svg(_ report: BenchReport) -> String {
        var plot = ReportPlot()
        plot.text(report.circumstances, x: 8, size: 12, anchor: "start", color: "#666")
        plot.y += 8
        for section in report.sections { plot.draw(section) }
        let height = Figure.plain(plot.y + 12)
        return """
            <svg xmlns="http://www.w3.org/2000/svg" width="\(Figure.plain(width))" height="\(height)" \
            viewBox="0 0 \(Figure.plain(width)) \(height)" font-family="sans-serif">
            <rect width="100%" height="100%" fill="#fff"/>
            \(plot.body)</svg>

            """
    }

    private mutating func draw(_ section: Section) {
        y += Self.titleHeight - 18
        let direction = section.better == .higher ? "more is better" : "less is better"
        text("\(section.title), \(section.unit) (\(direction))", x: 8, size: 14, anchor: "start", color: "#000")
        y += 18
        let longest = section.rows.compactMap { $0.statistics.maximum }.filter(\.isFinite).max() ?? 0
        let room = Self.width - Self.labelWidth - Self.figureWidth
        let scale = longest > 0 ? room / longest : 0
        for row in section.rows { draw(row, scale: scale) }
    }

    private mutating func draw(_ row: Row, scale: Double) {
        let statistics = row.statistics
        text(row.subject, x: Self.labelWidth - 8, size: 12, anchor: "end", color: "#000")
        if let median = statistics.median, let least = statistics.minimum, let most = statistics.maximum,
            most.isFinite
        {
            let end = Self.labelWidth + median * scale
            element(
                "rect",
                [
                    ("x", Figure.plain(Self.labelWidth)), ("y", Figure.plain(y - 12)),
                    ("width", Figure.plain(max(end - Self.labelWidth, 1))), ("height", "16"),
                    ("fill", Self.color(row.role)),
                ])
            if most > least {
                element(
                    "line",
                    [
                        ("x1", Figure.plain(Self.labelWidth + least * scale)), ("y1", Figure.plain(y - 4)),
                        ("x2", Figure.plain(Self.labelWidth + most * scale)), ("y2", Figure.plain(y - 4)),
                        ("stroke", "#000"), ("stroke-width", "1.5"),
                    ])
            }
            let right = Self.labelWidth + most * scale
            text(Figure.text(median), x: right + 6, size: 12, anchor: "start", color: "#000")
        } else {
            text("–", x: Self.labelWidth, size: 12, anchor: "start", color: "#000")
        }
        y += Self.rowHeight
    }

    private static func color(_ role: Row.Role) -> String {
        switch role {
        case .muster: "#2b6cb0"
        case .baseline: "#90b8de"
        case .peer: "#c58b3b"
        case .floor: "#8a8a8a"
        }
    }

    private mutating func text(_ content: String, x: Double, size: Int, anchor: String, color: String) {
        body += """
            <text x="\(Figure.plain(x))" y="\(Figure.plain(y))" font-size="\(size)" text-anchor="\(anchor)" \
            fill="\(color)">\(Self.escaped(content))</text>

            """
    }

    private mutating func element(_ name: String, _ attributes: [(name: String, value: String)]) {
        let written = attributes.map { " \($0.name)=\"\(Self.escaped($0.value))\"" }.joined()
        body += "<\(name)\(written)/>\n"
    }

    /// Text escaped for XML.
    static func escaped(_ text: String) -> String {
        text.replacing("&", with: "&amp;").replacing("<", with: "&lt;").replacing(">", with: "&gt;")
            .replacing("\"", with: "&quot;")
    }
}

extension Figure {
    /// A coordinate with one decimal.
    static func plain(_ value: Double) -> String { "\((value * 10).rounded() / 10)" }
}
