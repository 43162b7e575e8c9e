import MusterCore

/// Reads a task that is written plainly: one JSON object in ASCII without escapes, with the fields that large manifests have. It is many
/// times as fast as a decoder. Lines that it can't read are left to a decoder, which also finds the reason for a refusal.
struct PlainTaskReader {
    private let bytes: UnsafeBufferPointer<UInt8>
    private var place = 0

    private init(_ bytes: UnsafeBufferPointer<UInt8>) {
        self.bytes = bytes
    }

    /// The task of a line, checked; `nil` if the line is not plain, or wrong.
    static func task(_ line: [UInt8]) -> TaskSpecification? {
        line.withUnsafeBufferPointer { bytes in
            var reader = PlainTaskReader(bytes)
            return reader.task()
        }
    }

    private mutating func task() -> TaskSpecification? {
        var (key, path): (String?, String?)
        var urls: [String]?
        var (size, priority): (Int64?, Int64?)
        var digests: [String: String]?
        guard takes("{") else { return nil }
        repeat {
            guard let name = text(), takes(":") else { return nil }
            // A field that comes twice is not plain.
            switch name {
            case "key" where key == nil:
                key = text()
                guard key != nil else { return nil }
            case "path" where path == nil:
                path = text()
                guard path != nil else { return nil }
            case "urls" where urls == nil:
                urls = texts()
                guard urls != nil else { return nil }
            case "size" where size == nil:
                size = number()
                guard size != nil else { return nil }
            case "priority" where priority == nil:
                priority = number()
                guard priority != nil else { return nil }
            case "digests" where digests == nil:
                digests = pairs()
                guard digests != nil else { return nil }
            default: return nil
            }
        } while takes(",")
        guard takes("}"), isAtEnd, let urls, let rank = Int32(exactly: priority ?? 0) else { return nil }
        return try? TaskSpecification(
            urls: urls, key: key, path: path, size: size, digests: digests ?? [:], priority: rank)
    }

    private mutating func texts() -> [String]? {
        guard takes("[") else { return nil }
        var texts: [String] = []
        repeat {
            guard let text = text() else { return nil }
            texts.append(text)
        } while takes(",")
        return takes("]") ? texts : nil
    }

    private mutating func pairs() -> [String: String]? {
        guard takes("{") else { return nil }
        var pairs: [String: String] = [:]
        repeat {
            guard let name = text(), takes(":"), let value = text(), pairs.updateValue(value, forKey: name) == nil
            else {
                return nil
            }
        } while takes(",")
        return takes("}") ? pairs : nil
    }

    /// A text of printable ASCII without backslashes.
    private mutating func text() -> String? {
        guard takes("\"") else { return nil }
        let start = place
        while place < bytes.count, bytes[place] != UInt8(ascii: "\"") {
            guard (0x20..<0x7F).contains(bytes[place]), bytes[place] != UInt8(ascii: "\\") else { return nil }
            place += 1
        }
        guard place < bytes.count else { return nil }
        defer { place += 1 }
        return String(decoding: bytes[start..<place], as: UTF8.self)
    }

    /// A whole number from 0, of at most 18 digits, which every decoder reads the same way.
    private mutating func number() -> Int64? {
        skipSpaces()
        let start = place
        var number: Int64 = 0
        while place < bytes.count, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(bytes[place]) {
            guard place - start < 18 else { return nil }
            number = number * 10 + Int64(bytes[place] - UInt8(ascii: "0"))
            place += 1
        }
        let digits = place - start
        guard digits == 1 || digits > 1 && bytes[start] != UInt8(ascii: "0") else { return nil }
        return number
    }

    private mutating func takes(_ byte: Unicode.Scalar) -> Bool {
        skipSpaces()
        guard place < bytes.count, bytes[place] == UInt8(ascii: byte) else { return false }
        place += 1
        return true
    }

    private var isAtEnd: Bool {
        mutating get {
            skipSpaces()
            return place == bytes.count
        }
    }

    private mutating func skipSpaces() {
        while place < bytes.count, bytes[place] == 0x20 || bytes[place] == 0x09 { place += 1 }
    }
}
