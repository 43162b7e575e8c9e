import MusterCore
import Testing

@testable import MusterCoordinator

@Suite("What workers report is bounded and cleaned")
struct ReportedTextTests {
    @Test func textsLoseNullsAndAreCut() {
        #expect(ReportedText.clean("a\u{0}b") == "ab")
        #expect(ReportedText.clean(String(repeating: "x", count: 5_000)).utf8.count == 2_000)
    }

    @Test func validatorsAreWholeOrNone() {
        let longest = String(repeating: "e", count: Limits.validatorBytes)
        #expect(ReportedText.validator(longest) == longest && ReportedText.validator(longest + "e") == nil)
        #expect(ReportedText.validator("a\u{0}") == nil && ReportedText.validator(nil) == nil)
    }

    @Test func requestNamesArePrintable() {
        #expect(ReportedText.requestID("r-1\u{1B}[2J\nä") == "r-1[2J")
        #expect(ReportedText.requestID(String(repeating: "x", count: 500))?.utf8.count == 200)
        #expect(ReportedText.requestID("\n") == nil && ReportedText.requestID(nil) == nil)
    }

    @Test func addressesAreNumeric() {
        #expect(
            ReportedText.address("192.0.2.1") == "192.0.2.1" && ReportedText.address("2001:db8::1") == "2001:db8::1")
        #expect(ReportedText.address("example.org") == nil && ReportedText.address(nil) == nil)
    }

    @Test func numbersAreWithinTheirBounds() {
        #expect(ReportedText.status(404) == 404 && ReportedText.status(99) == nil && ReportedText.status(.max) == nil)
        #expect(ReportedText.source(19) == 19 && ReportedText.source(20) == nil && ReportedText.source(-1) == nil)
        #expect(ReportedText.retryAfter(.max) == 3_600 && ReportedText.retryAfter(-5) == 0)
        #expect(ReportedText.retryAfter(nil) == nil)
    }

    @Test func digestsHaveAKnownAlgorithmAndAllTheirDigits() {
        let digits = String(repeating: "A", count: 32)
        #expect(
            ReportedText.digests(["md5": digits, "sha256": "12", "blake3": digits, "crc32c": "xxxxxxxx"])
                == ["md5": digits.lowercased()])
    }

    @Test func namesAreOneSegmentAndPathsStayInTheSink() {
        #expect(ReportedText.name("a b.tar") == "a b.tar")
        for bad in ["a/b", "..", ".", "", ".muster", "a\u{0}", "a\\b", String(repeating: "x", count: 256)] {
            #expect(ReportedText.name(bad) == nil, "\(bad)")
        }
        #expect(ReportedText.path("d/a (2).tar") == "d/a (2).tar")
        #expect(ReportedText.path("../a") == nil && ReportedText.path("/a") == nil)
    }
}
