extension ByteFuzzer {
    /// How an input is changed.
    private enum Mutation: CaseIterable {
        case flippedBit, otherByte, piece, deletion, duplicate, splice, number, longRun, otherCase, noise
    }

    /// An input of the corpus after one to six mutations.
    func mutated(using random: inout SeededGenerator) -> [UInt8] {
        var bytes = corpus.randomElement(using: &random) ?? []
        for _ in 0..<Int.random(in: 1...6, using: &random) {
            apply(Mutation.allCases.randomElement(using: &random) ?? .noise, to: &bytes, using: &random)
            if bytes.count > longestBytes { bytes.removeLast(bytes.count - longestBytes) }
        }
        return bytes
    }

    private func apply(_ mutation: Mutation, to bytes: inout [UInt8], using random: inout SeededGenerator) {
        let range = Self.range(in: bytes, using: &random)
        switch mutation {
        case .flippedBit:
            if let place = bytes.indices.randomElement(using: &random) {
                bytes[place] ^= 1 << UInt8.random(in: 0...7, using: &random)
            }
        case .otherByte:
            if let place = bytes.indices.randomElement(using: &random) {
                bytes[place] = UInt8.random(in: .min ... .max, using: &random)
            }
        case .piece:
            bytes.insert(contentsOf: Self.pieces.randomElement(using: &random) ?? [], at: range.lowerBound)
        case .deletion:
            bytes.removeSubrange(range)
        case .duplicate:
            bytes.insert(contentsOf: Array(bytes[range]), at: range.upperBound)
        case .splice:
            let other = corpus.randomElement(using: &random) ?? []
            let start = Self.range(in: other, using: &random).lowerBound
            bytes = Array(bytes[..<range.lowerBound]) + other[start...]
        case .number:
            bytes.replaceSubrange(
                Self.digits(in: bytes, from: range.lowerBound),
                with: Self.numbers.randomElement(using: &random) ?? [])
        case .longRun:
            let count = 1 << Int.random(in: 2...14, using: &random)
            let part = Array(bytes[range].prefix(8))
            let times = part.isEmpty ? 0 : min(count, longestBytes) / part.count
            bytes.insert(contentsOf: Array(repeatElement(part, count: times).joined()), at: range.upperBound)
        case .otherCase:
            for place in range where Self.isLetter(bytes[place]) { bytes[place] ^= 0x20 }
        case .noise:
            let noise = range.map { _ in UInt8.random(in: .min ... .max, using: &random) }
            bytes.replaceSubrange(range, with: noise)
        }
    }

    /// A random range, mostly a short one; empty at a random place of empty bytes.
    private static func range(in bytes: [UInt8], using random: inout SeededGenerator) -> Range<Int> {
        let start = Int.random(in: 0...bytes.count, using: &random)
        let count = Int(random.magnitude(upTo: 6))
        return start..<min(bytes.count, start + count)
    }

    /// The first run of digits from a place on; where there is none, the empty range at that place.
    private static func digits(in bytes: [UInt8], from place: Int) -> Range<Int> {
        guard let start = bytes[place...].firstIndex(where: isDigit) else { return place..<place }
        return start..<(bytes[start...].firstIndex { !isDigit($0) } ?? bytes.count)
    }

    private static func isDigit(_ byte: UInt8) -> Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }

    private static func isLetter(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte & 0xDF)
    }

    /// Numbers at which computations overflow, bounds end, or readers differ.
    private static let numbers: [[UInt8]] = numberTexts.map { Array($0.utf8) }

    private static let numberTexts: [String] = [
        "", "0", "-0", "-1", "+1", "007", "24", "59", "60", "99", "255", "256", "9999", "10000", "65535", "65536",
        "300000", "999999", "2147483647", "2147483648", "4294967295", "4294967296", "1125899906842624",
        "1125899906842625", "9007199254740993", "-9223372036854775808", "9223372036854775807", "9223372036854775808",
        "18446744073709551615", "18446744073709551616", "340282366920938463463374607431768211456", "1.5", "1e3",
        "1e999", "0x7f", "0.0000000001", "NaN", "\u{ff11}", "\u{663}", "\u{1d7d9}",
    ]

    /// What has a meaning somewhere: ends of lines and texts, separators, escapes, and characters that are invisible, join others or
    /// change with their case.
    private static let texts: [String] = [
        "\0", "\r\n", "\n", "\t", " ", "  ", "\u{7f}", "\u{85}", "\u{a0}", "\u{301}", "\u{200b}", "\u{200d}",
        "\u{fe0f}", "\u{fe0f}\u{200d}", "\u{202e}", "\u{2028}", "\u{34f}", "\u{fffd}", "\u{1f469}\u{200d}", "é", "ß",
        "\u{130}", "\u{17f}", "\u{212a}", "漢", ".", "..", "../", "/", "//", "/\u{301}", ":\u{301}", "\\", "%", "%00",
        "%2f", "%2e%2e", "%zz", "%ff", "\"", "'", "\\\"", "\\u0000", "\\ud800", ",", ";", ":", "=", "==", "=x", "{",
        "}", "[", "]", "{}", "[]", "[[[[[[[[", "null", "true", "://", "@", "#", "?", "&", "*", "+", "-", "$", "`", "~0",
        "~1", "/0", "/9223372036854775807", ".muster", "env:", "file:/", "localhost", "127.0.0.1", "::1",
    ]

    /// What is not UTF-8, and the mark of UTF-16.
    private static let brokenBytes: [[UInt8]] = [
        [0xFF], [0xC0, 0xAF], [0xED, 0xA0, 0x80], [0xF4, 0x90, 0x80, 0x80], [0xE2, 0x80], [0xFE, 0xFF],
    ]

    private static let pieces: [[UInt8]] = texts.map { Array($0.utf8) } + brokenBytes
}
