import Glibc
import MusterTestSupport
import Testing

@testable import MusterCore

/// Header fields of origins: whatever they hold, what is read of them keeps its bounds.
@Suite struct HeadFieldFuzzTests {
    @Test func rangeLiesWithinItsTotalAndIsReadAgain() throws {
        let corpus = ["bytes 0-99/1234", "bytes 0-99/*", "bytes */1234", "bytes=5-6/7", "BYTES 1-2/3", "bytes  0-0/1"]
        try ByteFuzzer(corpus).run { input in
            guard let stated = ContentRange(input.text) else { return false }
            let most = Limits.fileSize.bytes
            let size = stated.size.map { String($0) } ?? "*"
            try input.expect(stated.size.map { (0...most).contains($0) } ?? true, "the size \(size) is out of bounds")
            guard let range = stated.range else {
                try input.expect(ContentRange("bytes */\(size)") == stated, "it is not read again")
                return true
            }
            try input.expect(range.start >= 0 && range.start < range.end, "\(range) has no bytes")
            try input.expect(range.end <= stated.size ?? most + 1, "\(range) is not within \(size)")
            let text = "bytes \(range.start)-\(range.end - 1)/\(size)"
            try input.expect(ContentRange(text) == stated, "\(text) is read as something else")
            return true
        }
    }

    @Test func lengthIsOneNumberWhicheverReaderReadsIt() throws {
        let corpus = ["0", "123", "123, 123", "+5", "5 bytes", "1125899906842624", "7,7 , 7", "-1"]
        try ByteFuzzer(corpus).run { input in
            let facts = ResponseFacts(status: 200, headers: [(name: "Content-Length", value: input.text)])
            guard let length = try? facts.contentLength() else { return false }
            try input.expect((0...Limits.fileSize.bytes).contains(length), "\(length) is out of bounds")
            let lenient = try? facts.contentLength(overlooking: true)
            try input.expect(lenient == length, "the lenient reader reads \(lenient.map { "\($0)" } ?? "nothing")")
            let numbers = input.bytes.split { $0 == UInt8(ascii: ",") }.map { part in
                String(decoding: part, as: UTF8.self).filter { $0 != " " && $0 != "\t" }
            }
            try input.expect(numbers.allSatisfy { Int64($0) == length }, "\(length) is none of its numbers")
            return true
        }
    }

    @Test func pauseAndValidatorsAreBounded() throws {
        let corpus = [
            "120", "0", "99999999999999999999", "Sun, 06 Nov 1994 08:49:37 GMT", "\"a-tag\"", "W/\"a\"",
            "text/html; x=y", "gzip, identity", "Mon, 31 Dec 9999 23:59:59 GMT",
        ]
        try ByteFuzzer(corpus, longestBytes: 10_000).run { input in
            let names = ["Retry-After", "ETag", "Last-Modified", "Content-Type", "Content-Encoding"]
            let facts = ResponseFacts(
                status: 200,
                headers: names.map { (name: $0, value: input.text) } + [
                    (name: "Date", value: "Sun, 06 Nov 1994 08:49:37 GMT")
                ])
            let pause = facts.retryAfterSeconds
            let most = Limits.retryAfter.components.seconds
            try input.expect(pause.map { (0...most).contains($0) } ?? true, "a pause is out of bounds")
            let found = facts.representation(size: nil)
            for validator in [found.etag, found.lastModified] {
                try input.expect(validator?.utf8.count ?? 0 <= Limits.validatorBytes, "a validator is too long")
                try input.expect(validator.map { $0 == input.text } ?? true, "a validator is changed")
            }
            let type = facts.mediaType ?? ""
            try input.expect(type == type.lowercased() && !type.contains(";"), "the type is \(type)")
            try input.expect(facts.contentCoding != "" && facts.contentCoding != "identity", "it is no coding")
            return pause != nil
        }
    }

    @Test func dateIsTheSameMomentWhenItIsWrittenAgain() throws {
        let corpus = [
            "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994",
            "Thu, 29 Feb 2024 23:59:60 GMT", "Sat, 01 Jan 0000 00:00:00 GMT", "Wednesday, 01-Mar-00 00:00:00 GMT",
        ]
        try ByteFuzzer(corpus).run { input in
            guard let date = HTTPDate(input.text) else { return false }
            // A leap second at the end of the last year is a moment of the year 10000, which has no form.
            if date.secondsSince1970 == 253_402_300_800 { return true }
            let text = try #require(Self.written(date.secondsSince1970))
            try input.expect(HTTPDate(text) == date, "\(text) is another moment")
            // The weekday is not compared: some origins state a wrong one.
            if input.bytes.count == 29, !input.text.contains(":60 GMT") {
                try input.expect(input.text.dropFirst(5) == text.dropFirst(5), "it is read as \(text)")
            }
            return true
        }
    }

    /// The moment in the form that is sent today, as the C library counts days; `nil` outside of the years 0 to 9999.
    private static func written(_ seconds: Int64) -> String? {
        var time = time_t(seconds)
        var parts = tm()
        guard gmtime_r(&time, &parts) != nil, (0...9_999).contains(parts.tm_year + 1_900) else { return nil }
        let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
        let days = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
        func padded(_ number: Int32, _ width: Int = 2) -> String {
            let digits = String(number)
            return String(repeating: "0", count: max(0, width - digits.count)) + digits
        }
        let day = "\(days[Int(parts.tm_wday)]), \(padded(parts.tm_mday)) \(months[Int(parts.tm_mon)])"
        let clock = [parts.tm_hour, parts.tm_min, parts.tm_sec].map { padded($0) }.joined(separator: ":")
        return "\(day) \(padded(parts.tm_year + 1_900, 4)) \(clock) GMT"
    }

    @Test func digestsAreReadAgainFromTheNewestField() throws {
        let zeros = "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="
        let corpus = [
            "sha-256=:\(zeros):", "SHA-256=\(zeros),MD5=1B2M2Y8AsgTpgAmY7PhCfg==", "1B2M2Y8AsgTpgAmY7PhCfg==",
            "crc32c=:AAAAAA==:;a=1, sha-256=:\(zeros):", "sha-256=?1, md5=@1659578233", "a=(1 2);b, md5=*1.5",
        ]
        try ByteFuzzer(corpus).run { input in
            var accepted = false
            for field in ["Repr-Digest", "Content-Digest", "Digest", "Content-MD5"] {
                let found = StatedDigests(ResponseFacts(status: 200, headers: [(name: field, value: input.text)]))
                for (name, value) in found.byName {
                    accepted = true
                    let algorithm = try #require(DigestAlgorithm(rawValue: name))
                    let digest = ContentDigest(algorithm: algorithm, hexadecimal: value)
                    try input.expect(digest == found.digests[algorithm], "\(field): \(name) has the digits \(value)")
                }
                if field == "Content-MD5", !found.digests.isEmpty {
                    let text = input.text.filter { $0 != " " && $0 != "\t" }
                    try input.expect(text.firstMatch(of: /^[A-Za-z0-9+\/]{22}(==)?$/) != nil, "it is no Base64")
                }
            }
            return accepted
        }
    }

    @Test func suggestedNameIsOneVisibleComponentThatStaysTheSame() throws {
        let corpus = [
            "attachment; filename=\"a.tar\"", "attachment; filename*=UTF-8''%e2%82%ac%20rates.txt",
            "inline; filename=a\\b/c; filename*=utf-8'en'%2fx%2e%2e", "https://example.org/pub/a%20b.tar?q#f",
            "filename=\"\u{1f469}\u{200d}\u{1f467}\u{fe0f}.png\"", String(repeating: "long ", count: 60) + ".txt",
        ]
        try ByteFuzzer(corpus).run { input in
            let names = [
                SuggestedName(contentDisposition: input.text), SuggestedName(url: input.text),
                SuggestedName(safe: input.text),
            ].compactMap { $0?.description }
            for name in names {
                let bytes = Array(name.utf8)
                try input.expect((1...Limits.pathComponentBytes).contains(bytes.count), "it has \(bytes.count) bytes")
                try input.expect(
                    !bytes.contains { $0 < 32 || $0 == 127 || "/\\".utf8.contains($0) } && name != "." && name != "..",
                    "\(name.debugDescription) is no component")
                let visible = InvisibleCharacters.replaced(in: name) { _ in "_" }
                try input.expect(visible == name, "\(name.debugDescription) has something invisible")
                let again = SuggestedName(safe: name)?.description
                try input.expect(again == name, "\(name.debugDescription) becomes \(again.debugDescription)")
            }
            return !names.isEmpty
        }
    }
}
