import MusterAPI
import MusterCore

/// Text that comes from an origin through a worker: bounded, and cleaned of what can't be stored or should not be shown.
enum ReportedText {
    /// A text without the one character that PostgreSQL can't store, of at most 2,000 bytes.
    static func clean(_ text: String) -> String {
        let most = 2_000
        var clean = String(decoding: text.utf8.lazy.filter { $0 != 0 }.prefix(most), as: UTF8.self)
        // U+FFFD stands for a character that was cut, and may be longer than what is left of that.
        if clean.utf8.count > most { clean.unicodeScalars.removeLast() }
        return clean
    }

    /// The origin's name for a request: printable ASCII, at most 200 bytes; `nil` when nothing is left.
    static func requestID(_ text: String?) -> String? {
        printable(text, most: 200)
    }

    /// The numeric address of a peer; `nil` when the text is no address.
    static func address(_ text: String?) -> String? {
        printable(text, most: 64).flatMap { AddressRange($0) == nil ? nil : $0 }
    }

    /// The status of an answer: three digits.
    static func status(_ status: Int?) -> Int32? {
        status.flatMap { (100...999).contains($0) ? Int32($0) : nil }
    }

    /// The ordinal of a source in its task.
    static func source(_ ordinal: Int32?) -> Int32? {
        ordinal.flatMap { (0..<Int32(Limits.sourcesPerTask)).contains($0) ? $0 : nil }
    }

    /// The pause that an origin asks for, in seconds (range contract, row 25).
    static func retryAfter(_ seconds: Int64?) -> Int64? {
        seconds.map { min(max(0, $0), Limits.retryAfter.components.seconds) }
    }

    /// The valid digests: of known algorithms, with the right number of hexadecimal digits.
    static func digests(_ digests: [String: String]) -> [String: String] {
        digests.reduce(into: [:]) { known, entry in
            let digest = DigestAlgorithm(rawValue: entry.key).flatMap {
                ContentDigest(algorithm: $0, hexadecimal: entry.value)
            }
            if let digest { known[entry.key] = digest.hexadecimal }
        }
    }

    /// A validator as the origin stated it; `nil` when it is longer than `Limits.validatorBytes`, or can't be stored. A
    /// part of a validator would be another validator.
    static func validator(_ text: String?) -> String? {
        text.flatMap { $0.utf8.count <= Limits.validatorBytes && !$0.utf8.contains(0) ? $0 : nil }
    }

    /// A representation with its texts checked.
    static func representation(_ stated: Representation) -> Representation {
        Representation(
            size: stated.size, etag: validator(stated.etag), lastModified: validator(stated.lastModified),
            isDateStrong: stated.isDateStrong, digests: stated.digests.map(digests))
    }

    /// A name that an origin suggests, made safe by the worker: one segment of a path, or nothing (range contract, row 34).
    static func name(_ text: String?) -> String? {
        guard let name = path(text), !name.utf8.contains(UInt8(ascii: "/")) else { return nil }
        return name
    }

    /// A path below a sink, or nothing.
    static func path(_ text: String?) -> String? {
        text.flatMap { try? DestinationPath(validating: $0) }?.string
    }

    private static func printable(_ text: String?, most: Int) -> String? {
        guard let text else { return nil }
        let clean = String(decoding: text.utf8.lazy.filter { (33...126).contains($0) }.prefix(most), as: UTF8.self)
        return clean.isEmpty ? nil : clean
    }
}
