import MusterCore
import Testing

/// Answers to a request that names a file that is already there, above all 304.
struct UnmodifiedTests {
    private static let day = "Sun, 01 Mar 2026 12:00:00 GMT"
    private static let strong = Representation(size: 1_000, etag: "\"v1\"", lastModified: day)
    private static let weak = Representation(size: 1_000, etag: "W/\"v1\"", lastModified: day)
    private static let dated = Representation(size: 1_000, lastModified: day, isDateStrong: true)

    private static func verdict(_ held: Representation?, _ headers: [String]) -> Outcome {
        var question = FetchQuestion.first
        question.held = held
        let row = OriginRow(0, "304", 304, headers, to: question, .unmodified)
        return Outcome(ResponseVerdict.judge(row.facts, to: row.question))
    }

    @Test func strongTagIsBelievedUnlessTheAnswerStatesAnother() {
        #expect(Self.verdict(Self.strong, []) == .unmodified)
        #expect(Self.verdict(Self.strong, ["ETag: \"v1\"", "Content-Length: 0"]) == .unmodified)
        #expect(Self.verdict(Self.strong, ["ETag: \"v2\""]) == .askPlainly)
    }

    /// Different contents may share a weak tag (RFC 9110 §8.8.1).
    @Test func weakTagNeedsTheDateBesides() {
        #expect(Self.verdict(Self.weak, ["ETag: W/\"v1\"", "Last-Modified: \(Self.day)"]) == .unmodified)
        #expect(Self.verdict(Self.weak, ["ETag: W/\"v1\""]) == .askPlainly)
        #expect(Self.verdict(Self.weak, []) == .askPlainly)
        let dateless = Representation(size: 1_000, etag: "W/\"v1\"")
        #expect(Self.verdict(dateless, ["ETag: W/\"v1\""]) == .unmodified)
        #expect(Self.verdict(dateless, []) == .askPlainly)
    }

    @Test func dateIsBelievedUnlessTheAnswerStatesAnother() {
        #expect(Self.verdict(Self.dated, []) == .unmodified)
        #expect(Self.verdict(Self.dated, ["Last-Modified: Sun, 01 Mar 2026 12:00:01 GMT"]) == .askPlainly)
    }

    /// Origins that ignore the condition send the file again, with the known tag.
    @Test(
        arguments: [
            (["ETag: \"v1\"", "Content-Length: 1000"], true), (["ETag: \"v2\"", "Content-Length: 1000"], false),
            (["ETag: W/\"v1\"", "Content-Length: 1000"], false), (["ETag: \"v1\"", "Content-Length: 1001"], false),
            (["Content-Length: 1000"], false),
            (["ETag: \"v1\"", "Content-Length: 1000", "Last-Modified: Sun, 01 Mar 2026 12:00:01 GMT"], false),
        ])
    func bodyUnderTheSameStrongTagNeedNotCome(headers: [String], isUnmodified: Bool) {
        var question = FetchQuestion.first
        question.held = Self.strong
        let row = OriginRow(0, "200", 200, headers, to: question, .unmodified)
        let verdict = ResponseVerdict.judge(row.facts, to: row.question)
        #expect((verdict == .unmodified) == isUnmodified, "\(verdict)")
        // Without a held file the body is taken.
        question.held = nil
        #expect(ResponseVerdict.judge(row.facts, to: question) != .unmodified)
    }

    @Test func notModifiedWithoutAConditionIsRefused() {
        #expect(Self.verdict(nil, ["ETag: \"v1\""]) == .descend(.whole))
    }

    @Test func conditionUsesTheBestValidator() {
        #expect(Self.strong.absenceCondition.map { "\($0.name): \($0.value)" } == "If-None-Match: \"v1\"")
        #expect(Self.weak.absenceCondition.map { "\($0.name): \($0.value)" } == "If-None-Match: W/\"v1\"")
        #expect(Self.dated.absenceCondition.map { "\($0.name): \($0.value)" } == "If-Modified-Since: \(Self.day)")
        // A date that two contents of one second may share, and a malformed tag.
        #expect(Representation(size: 1, lastModified: Self.day, isDateStrong: false).absenceCondition == nil)
        #expect(Representation(size: 1, etag: "v1").absenceCondition == nil)
        #expect(Representation(size: 1).absenceCondition == nil)
    }
}
