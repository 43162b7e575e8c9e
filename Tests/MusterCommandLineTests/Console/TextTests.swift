import Testing

@testable import MusterCommandLine

@Suite("Text for a terminal")
struct TextTests {
    @Test func controlCharactersAreWrittenOut() {
        #expect(TextWidth.escaped("a\u{1B}[31mb\n\u{7F}\u{202E}") == "a\\u{1b}[31mb\\u{a}\\u{7f}\\u{202e}")
        #expect(TextWidth.escaped("a\nb\t", keepingLineBreaks: true) == "a\nb\\u{9}")
        #expect(TextWidth.escaped("größe 日本 🎉 👩‍👩‍👧") == "größe 日本 🎉 👩‍👩‍👧")
        #expect(TextWidth.escaped("a\u{200B}b\u{61C}\u{AD}\u{E0041}") == "a\\u{200b}b\\u{61c}\\u{ad}\\u{e0041}")
    }

    @Test func wideCharactersTakeTwoColumns() {
        #expect(TextWidth.columns("abc") == 3)
        #expect(TextWidth.columns("日本") == 4)
        #expect(TextWidth.columns("e\u{301}") == 1)
    }

    @Test func aLongNameKeepsItsEnds() {
        #expect(TextWidth.clipped("abcdefghij", to: 10) == "abcdefghij")
        #expect(TextWidth.clipped("abcdefghijk", to: 7) == "abc…ijk")
        #expect(TextWidth.clipped("abc", to: 1) == "…")
        #expect(TextWidth.clipped("abc", to: 0) == "")
        for width in 0...12 { #expect(TextWidth.columns(TextWidth.clipped("日本語の名前", to: width)) <= width) }
    }

    @Test func aTableAlignsItsColumns() {
        var table = Table([.text("NAME"), .number("SIZE"), .text("NOTE")])
        table.add(["a", "1", ""])
        table.add(["long\u{1B}", "1000", "x"])
        #expect(
            table.lines() == [
                "NAME        SIZE  NOTE",
                "a              1",
                "long\\u{1b}  1000  x",
            ]
        )
        #expect(table.lines(width: 10).allSatisfy { TextWidth.columns($0) <= 10 })
    }

    @Test func textThatDoesNotFitTheTerminalStandsBelowItsRowInFull() {
        var table = Table([.text("STATE"), .name("KEY"), .sentence("FAILURE")])
        table.add([
            "failed", "a.bin", "notFound (status 404) from https://example.org/a.bin: the origin does not have it",
        ])
        table.add(["queued", String(repeating: "x", count: 60) + ".bin", ""])
        let lines = table.lines(width: 40)
        #expect(
            lines == [
                "STATE   KEY",
                "failed  a.bin",
                "    failure: notFound (status 404) from",
                "      https://example.org/a.bin: the",
                "      origin does not have it",
                "queued  xxxxxxxxxxxxxxx…xxxxxxxxxxxx.bin",
            ])
        #expect(table.lines(width: 400) == table.lines())
    }

    @Test func aLongNameIsShortenedBeforeAnythingElseMoves() {
        var table = Table([.text("STATE"), .name("KEY"), .sentence("FAILURE")])
        table.add(["failed", String(repeating: "x", count: 190), "cut"])
        #expect(table.lines(width: 40)[1] == "failed  xxxxxxxxxxx…xxxxxxxxxxx  cut")
    }

    @Test(arguments: [10, 20, 40, 79, 80, 200])
    func everyTableFitsItsTerminal(width: Int) {
        var table = Table([.number("ID"), .name("NAME"), .text("NEXT TRY"), .text("TYPE"), .sentence("FAILURE")])
        table.add(["1", "subscription", "2026-03-01T12:00:00.000Z", "group.failed", "the receiver answered 500"])
        let lines = table.lines(width: width)
        // A timestamp is one word and is never broken.
        if width >= 40 { #expect(lines.allSatisfy { TextWidth.columns($0) <= width }, "\(lines)") }
        let words = Set(lines.flatMap { $0.split(separator: " ").map(String.init) })
        #expect(words.isSuperset(of: ["2026-03-01T12:00:00.000Z", "group.failed", "answered", "500"]), "\(lines)")
    }

    @Test func aLongLineIsBrokenBetweenWordsAndGoesOnFurtherIn() {
        #expect(TextWidth.wrapped("one two three", to: 7, hanging: 2) == ["one two", "  three"])
        #expect(TextWidth.wrapped("  one two three", to: 8, hanging: 2) == ["  one", "    two", "    three"])
        #expect(TextWidth.wrapped("tasks:      12 in all", to: 15) == ["tasks:      12", "in all"])
        #expect(TextWidth.wrapped("a https://example.org/a b", to: 10) == ["a", "https://example.org/a", "b"])
        #expect(TextWidth.wrapped("short", to: 10) == ["short"])
        #expect(TextWidth.wrapped("https://example.org/a", to: 10) == ["https://example.org/a"])
        #expect(TextWidth.wrapped("", to: 10) == [""])
    }

    @Test func aRegionIsRedrawnInPlace() {
        var region = LiveRegion()
        let size = Terminal.Size(columns: 20, rows: 10)
        #expect(region.redraw(["one", "two"], size: size) == "\rone\u{1B}[K\ntwo\u{1B}[K\n\u{1B}[J")
        #expect(region.redraw(["three"], size: size) == "\r\u{1B}[2Athree\u{1B}[K\n\u{1B}[J")
        #expect(region.clear(size: size) == "\r\u{1B}[1A\u{1B}[J")
        #expect(region.restore(size: size) == "\rthree\u{1B}[K\n\u{1B}[J", "something stands above it now")
        #expect(region.clear(size: size) == "\r\u{1B}[1A\u{1B}[J")
        #expect(region.clear(size: size) == "\r\u{1B}[J")
    }

    @Test func aNarrowerTerminalHasWrappedTheLines() {
        var region = LiveRegion()
        _ = region.redraw(["0123456789", "ab"], size: Terminal.Size(columns: 20, rows: 10))
        // Ten columns in a terminal of four are three rows, and the second line is one.
        #expect(region.clear(size: Terminal.Size(columns: 4, rows: 10)) == "\r\u{1B}[4A\u{1B}[J")
    }

    @Test func linesAreClippedAndColoursSwitchedOff() {
        var region = LiveRegion()
        let text = region.redraw(["\u{1B}[31mabcdefgh\u{1B}[0m"], size: Terminal.Size(columns: 5, rows: 10))
        #expect(text == "\r\u{1B}[31mabcd\u{1B}[0m\u{1B}[K\n\u{1B}[J")
    }

    @Test func noMoreLinesAreDrawnThanTheScreenHas() {
        var region = LiveRegion()
        let text = region.redraw((0..<9).map(String.init), size: Terminal.Size(columns: 20, rows: 4))
        #expect(text.split(separator: "\n").count == 4)
        #expect(region.clear(size: Terminal.Size(columns: 20, rows: 4)) == "\r\u{1B}[3A\u{1B}[J")
    }

    @Test func coloursFollowTheEnvironment() {
        #expect(Terminal.allowsColour(environment: ["TERM": "xterm"]))
        #expect(!Terminal.allowsColour(environment: ["NO_COLOR": "1"]))
        #expect(Terminal.allowsColour(environment: ["NO_COLOR": ""]))
        #expect(!Terminal.allowsColour(environment: ["TERM": "dumb"]))
        #expect(ProgressView.Style(environment: ["LANG": "C.UTF-8"]).unicode)
        #expect(!ProgressView.Style(environment: ["LANG": "C.UTF-8", "LC_ALL": "C"]).unicode)
    }

    @Test func aColumnThatSaysNothingIsLeftOutIfItMayBe() {
        var table = Table([.text("A", isOptional: true), .text("B"), .number("C", isOptional: true)])
        table.add(["-", "-", ""])
        #expect(table.lines() == ["B", "-"])
        table.add(["", "b", "3"])
        #expect(table.lines() == ["B  C", "-", "b  3"])
    }

    /// The text before the part that differs is the same in all names.
    @Test func partThatTellsNamesApartIsNotCut() {
        let names = (0...7).map { "a-file-with-a-rather-long-name-number-\($0)-日本.bin" }
        for width in [18, 34] {
            let shown = names.map { TextWidth.clipped($0, among: names, to: width) }
            #expect(Set(shown).count == names.count && shown.allSatisfy { TextWidth.columns($0) <= width }, "\(shown)")
            #expect(shown.allSatisfy { $0.hasPrefix("a-") && $0.hasSuffix("日本.bin") }, "\(shown)")
        }
        let long = (0...7).map { "\(String(repeating: "x", count: 40))-\($0)-\(String(repeating: "y", count: 40)).bin" }
        let shown = long.map { TextWidth.clipped($0, among: long, to: 18) }
        #expect(Set(shown).count == long.count && shown.allSatisfy { TextWidth.columns($0) == 18 }, "\(shown)")
        #expect(TextWidth.clipped("short", among: names, to: 18) == "short")
        #expect(TextWidth.clipped(names[0], among: [names[0]], to: 18) == TextWidth.clipped(names[0], to: 18))
    }
}
