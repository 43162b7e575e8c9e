import MusterCore
import Testing

struct AppearanceTests {
    private static func look(_ size: Int64?, _ headers: (String, String)...) -> Appearance {
        Appearance(ResponseFacts(status: 200, headers: headers.map { (name: $0.0, value: $0.1) }), size: size)
    }

    private static let moment = "Thu, 26 Nov 2026 02:33:05 GMT"

    /// A date that is as young as the answer is no validator yet, but becomes one. Both answers are of the same file.
    @Test func aFileThatWasMadeAMomentAgoLooksAsItDoesLater() {
        let young = Self.look(0, ("Last-Modified", Self.moment), ("Date", Self.moment), ("ETag", "\"a\""))
        let later = Self.look(
            0, ("Last-Modified", Self.moment), ("Date", "Thu, 26 Nov 2026 02:35:15 GMT"), ("ETag", "\"a\""))
        #expect(!later.isOther(than: young) && !young.isOther(than: later))
        #expect(young.kind == later.kind)
    }

    /// Each look is more likely the file than the look before it.
    @Test func ofTwoAnswersTheOneLessLikeAPageIsTheFile() {
        let looks = [
            Self.look(0, ("Content-Type", "application/zip")),
            Self.look(5_000, ("Content-Type", "text/html")),
            Self.look(30, ("Content-Type", "text/csv")),
            Self.look(20, ("Content-Type", "text/plain"), ("ETag", "\"a\"")),
            Self.look(10, ("Content-Type", "application/zip")),
            Self.look(5, ("Content-Type", "application/zip"), ("ETag", "\"a\"")),
        ]
        for (worse, better) in zip(looks, looks.dropFirst()) {
            #expect(better.isRatherTheFile(than: worse, isRepeated: false, namesNoPage: false), "\(better)")
            #expect(!worse.isRatherTheFile(than: better, isRepeated: true, namesNoPage: false), "\(worse)")
        }
    }

    /// The second answer may be a page that says that the URL was used.
    @Test func ofTwoEqualAnswersTheFirstIsTheFileUnlessItCameForOtherFiles() {
        let type = ("Content-Type", "application/json")
        let (first, second) = (Self.look(130, type), Self.look(939, type))
        #expect(!second.isRatherTheFile(than: first, isRepeated: false, namesNoPage: false))
        #expect(second.isRatherTheFile(than: first, isRepeated: true, namesNoPage: false))
        #expect(!first.isRatherTheFile(than: second, isRepeated: true, namesNoPage: false))
    }

    @Test func pageIsNotTheFileIfTheNameIsNotThatOfAPage() {
        let (nothing, page) = (Self.look(0), Self.look(500, ("Content-Type", "text/html")))
        #expect(page.isRatherTheFile(than: nothing, isRepeated: false, namesNoPage: false))
        #expect(!page.isRatherTheFile(than: nothing, isRepeated: true, namesNoPage: true))
    }

    @Test func largerBodiesAreExaminedWhereTheyLookLikePages() {
        #expect(Self.look(300 << 10, ("Content-Type", "text/html")).isSmall)
        #expect(!Self.look(5 << 20, ("Content-Type", "text/html")).isSmall)
        #expect(Self.look(300 << 10, ("Content-Type", "text/plain"), ("ETag", "\"a\"")).isSmall)
        #expect(!Self.look(300 << 10, ("Content-Type", "application/zip")).isSmall)
    }

    @Test func filesOfATypeThatPagesDontHaveAreUsualWithATagOrADate() {
        let type = ("Content-Type", "application/octet-stream")
        #expect(Self.look(10, type, ("ETag", "\"a\"")).isUsual)
        #expect(Self.look(10, type, ("Last-Modified", Self.moment)).isUsual)
        #expect(!Self.look(10, type).isUsual)
        #expect(!Self.look(0, type, ("ETag", "\"a\"")).isUsual)
        #expect(!Self.look(10, ("Content-Type", "text/html"), ("ETag", "\"a\"")).isUsual)
    }
}
