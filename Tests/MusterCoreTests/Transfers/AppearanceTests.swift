import MusterCore
import Testing

struct AppearanceTests {
    private static func look(_ size: Int64?, _ headers: (String, String)...) -> Appearance {
        Appearance(ResponseFacts(status: 200, headers: headers.map { (name: $0.0, value: $0.1) }), size: size)
    }

    private static let moment = "Thu, 26 Nov 2026 02:33:05 GMT"

    /// A date that is as young as the answer is no validator yet, and one a second later: the answers are of the same file.
    @Test func aFileThatWasMadeAMomentAgoLooksAsItDoesLater() {
        let young = Self.look(0, ("Last-Modified", Self.moment), ("Date", Self.moment), ("ETag", "\"a\""))
        let later = Self.look(
            0, ("Last-Modified", Self.moment), ("Date", "Thu, 26 Nov 2026 02:35:15 GMT"), ("ETag", "\"a\""))
        #expect(!later.isOther(than: young) && !young.isOther(than: later))
        #expect(young.kind == later.kind)
    }

    /// Each is rather the file than those before it.
    @Test func ofTwoAnswersTheOneThatPagesDontLookLikeIsTheFile() {
        let looks = [
            Self.look(0, ("Content-Type", "application/zip")),
            Self.look(5_000, ("Content-Type", "text/html")),
            Self.look(30, ("Content-Type", "text/csv")),
            Self.look(40, ("Content-Type", "text/csv")),
            Self.look(20, ("Content-Type", "text/plain"), ("ETag", "\"a\"")),
            Self.look(10, ("Content-Type", "application/zip")),
        ]
        for (worse, better) in zip(looks, looks.dropFirst()) {
            #expect(better.isRatherTheFile(than: worse), "\(better)")
            #expect(!worse.isRatherTheFile(than: better), "\(worse)")
        }
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
