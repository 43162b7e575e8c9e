import FoundationEssentials
import Glibc
import MusterTestSupport
import Testing

@testable import MusterCore

/// Texts of values, as people and peers write them.
@Suite struct NotationFuzzTests {
    private static let factors: [String: Double] = [
        "": 1, "B": 1, "KiB": 1_024, "K": 1_024, "k": 1_024, "MiB": 1_048_576, "M": 1_048_576, "m": 1_048_576,
        "GiB": 1_073_741_824, "G": 1_073_741_824, "g": 1_073_741_824, "TiB": 1_099_511_627_776,
        "T": 1_099_511_627_776, "t": 1_099_511_627_776, "KB": 1e3, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12,
    ]

    @Test func sizeIsTheProductOfItsNumberAndItsUnit() throws {
        try ByteFuzzer(["64KiB", "8M", "1.5GiB", "20MB", "123B", "123", "8388607TiB", "0.000000001TB"]).run { input in
            let text = input.text
            guard let count = ByteCount(text) else { return false }
            let number = text.prefix { !$0.isLetter }
            let factor = try #require(Self.factors[String(text.dropFirst(number.count))])
            let expected = try #require(Double(number)) * factor
            try input.expect(count.bytes >= 0, "it is negative")
            try input.expect(abs(Double(count.bytes) - expected) <= 1 + expected * 1e-9, "it is read as \(count.bytes)")
            try input.expect(ByteCount(String(count.bytes)) == count, "\(count.bytes) is read as another size")
            try input.expect(count.description.utf8.count <= 16, "it is shown as \(count)")
            return true
        }
    }

    @Test func durationIsTheProductOfItsNumberAndItsUnit() throws {
        let units: [String: Double] = ["ms": 1, "s": 1e3, "m": 6e4, "h": 3.6e6, "d": 8.64e7]
        try ByteFuzzer(["500ms", "30s", "10m", "1.5h", "7d", "0s", "106751991167d"]).run { input in
            let text = input.text
            guard let duration = DurationNotation.parse(text) else { return false }
            let number = text.prefix { !$0.isLetter }
            let factor = try #require(units[String(text.dropFirst(number.count))])
            let expected = try #require(Double(number)) * factor
            let found = Double(duration.milliseconds)
            try input.expect(found >= 0 && abs(found - expected) <= 1 + expected * 1e-9, "it is read as \(duration)")
            try input.expect(DurationNotation.parse("\(duration.milliseconds)ms") == duration, "it is not read again")
            try input.expect(DurationNotation.format(duration).utf8.count <= 24, "it is shown at length")
            return true
        }
    }

    @Test func base64HasItsAlphabetAndIsWrittenAgain() throws {
        let corpus = ["", "AAAA", "AAA=", "AA==", "AAA", "AA", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "++//"]
        try ByteFuzzer(corpus).run { input in
            let text = input.text
            guard let bytes = Base64.decode(text[...]) else { return false }
            let digits = text.utf8.prefix { $0 != UInt8(ascii: "=") }
            let padding = text.utf8.dropFirst(digits.count)
            try input.expect(padding.allSatisfy { $0 == UInt8(ascii: "=") }, "the padding is wrong")
            let written = Data(bytes).base64EncodedString().utf8.prefix { $0 != UInt8(ascii: "=") }
            // The last digit may have bits that belong to no byte.
            try input.expect(
                written.count == digits.count && written.dropLast().elementsEqual(digits.dropLast()),
                "it is written as \(String(decoding: written, as: UTF8.self))")
            let secret = try? WebhookSecret(validating: "whsec_" + text)
            try input.expect(secret.map { $0.key == bytes } ?? true, "as a secret it has another key")
            return true
        }
    }

    @Test func decodedSegmentIsEncodedAndDecodedAgain() throws {
        try ByteFuzzer(["a%2Fb", "%C3%A4.txt", "100%25", "%00", "a+b", "%f0%9f%98%80"]).run { input in
            let text = input.text
            guard let decoded = PercentEncoding.decode(text) else { return false }
            let escapes = text.utf8.count { $0 == UInt8(ascii: "%") }
            try input.expect(decoded.utf8.count == text.utf8.count - 2 * escapes, "its length is wrong")
            let encoded = PercentEncoding.encodeSegment(decoded)
            try input.expect(PercentEncoding.decode(encoded) == decoded, "\(encoded) is decoded as something else")
            return true
        }
    }

    @Test func momentIsReadAgainAndCanBeComputedWith() throws {
        let corpus = [
            "2026-03-01T12:00:00.000Z", "2026-03-01T13:30:00+01:30", "9999-12-31T23:59:59.999Z", "0001-01-01T00:00:00Z",
            "300000-01-01T00:00:00Z", "506713-01-01T00:00:00.5Z",
        ]
        try ByteFuzzer(corpus).run { input in
            let json = try JSONEncoder().encode([input.text])
            guard let moment = try? JSONDecoder().decode([Timestamp].self, from: json).first else { return false }
            try input.expect(moment.description.utf8.count == 24, "it is written as \(moment)")
            let again = try JSONDecoder().decode([Timestamp].self, from: JSONEncoder().encode([moment]))
            try input.expect(again == [moment], "\(moment) is read as \(again)")
            // A day more or less is still a moment, whatever the zone.
            let (_, overflow) = moment.microseconds.addingReportingOverflow(86_400_000_000)
            try input.expect(!overflow, "\(moment) is at the end of 64 bits")
            return true
        }
    }

    @Test func addressIsWhatTheSystemReadsToo() throws {
        let corpus = [
            "127.0.0.1", "255.255.255.255", "::", "::1", "1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7::", "::ffff:10.0.0.1",
            "64:ff9b::192.0.2.33", "2001:DB8::ff", "1::2:3",
        ]
        try ByteFuzzer(corpus).run { input in
            // A zone is cut off here, and the system's function ends at a NUL.
            guard !input.bytes.contains(where: { $0 == 0 || $0 == UInt8(ascii: "%") }) else { return false }
            let (mine, other) = (NumericAddress.parse(input.text.utf8), Self.system(input.text))
            try input.expect(mine == other, "it is read as \(mine ?? []), and by the system as \(other ?? [])")
            return mine != nil
        }
    }

    /// The 16 bytes of an address as the system reads it.
    private static func system(_ text: String) -> [UInt8]? {
        var quad = in_addr()
        if inet_pton(AF_INET, text, &quad) == 1 {
            return NumericAddress.mapped(withUnsafeBytes(of: quad) { Array($0) })
        }
        var groups = in6_addr()
        return inet_pton(AF_INET6, text, &groups) == 1 ? withUnsafeBytes(of: groups) { Array($0) } : nil
    }

    @Test func networkContainsItsOwnFirstAddressAndIsReadAgain() throws {
        let corpus = ["10.0.0.0/8", "0.0.0.0/0", "::/0", "fd00::/8", "fe80::%eth0/10", "::1/128", "1.2.3.4/32"]
        try ByteFuzzer(corpus).run { input in
            guard let range = AddressRange(input.text) else { return false }
            try input.expect(range.bytes.count == 16 && (0...128).contains(range.prefix), "it is no network")
            let address = range.description.utf8.prefix { $0 != UInt8(ascii: "/") }
            let first = try #require(AddressRange(address: String(decoding: address, as: UTF8.self)))
            try input.expect(range.contains(first) && range.contains(range), "its own address is not within it")
            let again = try JSONDecoder().decode([AddressRange].self, from: JSONEncoder().encode([range]))
            try input.expect(again == [range], "it is read again as \(again)")
            return true
        }
    }

    @Test func patternOfGroupsIsReadBackFromItsExpression() throws {
        let allowed = Set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-*?".utf8)
        try ByteFuzzer(["night-*", "a.b", "?a?", "***a", "*", "a*_*.x-"]).run { input in
            let text = input.text
            let isPlain = (1...200).contains(text.utf8.count) && text.utf8.allSatisfy(allowed.contains)
            let filter = try? EventFilter(groups: text, types: [])
            try input.expect((filter != nil) == isPlain, "it is \(isPlain ? "" : "not ")a pattern")
            guard let filter, let expression = filter.groupsExpression else { return filter != nil }
            try input.expect(expression.hasPrefix("^") && expression.hasSuffix("$"), "\(expression) has open ends")
            var pattern = ""
            var rest = expression.dropFirst().dropLast()
            while let first = rest.popFirst() {
                if first == "\\" {
                    rest.removeFirst()
                    pattern.append(".")
                } else if first == ".", rest.first == "*" {
                    rest.removeFirst()
                    pattern.append("*")
                } else {
                    pattern.append(first == "." ? "?" : first)
                }
            }
            try input.expect(pattern == text.replacing(/\*+/, with: "*"), "\(expression) is the pattern \(pattern)")
            return true
        }
    }

    @Test func replacedTextHasNothingInvisibleLeft() throws {
        let corpus = [
            "plain", "a\u{202e}b", "\u{1f469}\u{200d}\u{1f467}", "\u{2764}\u{fe0f}\u{200d}\u{1f525}",
            "x\u{fe0f}\u{200d}y", "it's $HOME", "-rf", "é\u{301}",
        ]
        try ByteFuzzer(corpus).run { input in
            for replacement in ["", "_"] {
                let visible = InvisibleCharacters.replaced(in: input.text) { _ in replacement }
                let again = InvisibleCharacters.replaced(in: visible) { _ in replacement }
                try input.expect(again == visible, "\(visible.debugDescription) becomes \(again.debugDescription)")
            }
            let word = ShellWord(input.text).description
            let shown = InvisibleCharacters.replaced(in: word) { _ in "_" }
            try input.expect(shown == word, "the word \(word.debugDescription) has something invisible")
            try input.expect(word.utf8.count <= 4 * input.text.utf8.count + 8, "the word is too long")
            return true
        }
    }
}
