import MusterAPI
import MusterCore
import MusterStore
import Testing

@testable import MusterCoordinator

@Suite("How the source of a lease is asked")
struct LeaseTermsTests {
    private static let url = "https://a.example/f?old"

    private func terms(
        fresh: String? = nil, headers: [String: String] = [:], freshHeaders: [String: String] = [:],
        options: FetchOptions? = nil, defaults: FetchOptions? = nil
    ) throws -> LeaseTerms {
        try LeaseTerms(
            ordinal: 1, url: Self.url, headers: headers, freshURL: fresh, freshHeaders: freshHeaders, options: options,
            defaults: defaults)
    }

    private func options(_ headers: [String: String]) -> FetchOptions {
        var options = FetchOptions()
        options.headers = headers.mapValues { Secret($0) }
        return options
    }

    @Test func theTasksOptionsCountOverItsGroups() throws {
        var defaults = options(["A": "group", "B": "group"])
        defaults.netrc = "/n"
        var own = options(["a": "task"])
        own.httpVersion = .http1
        let merged = try terms(options: own, defaults: defaults).options
        #expect(merged?.headers == ["a": Secret("task"), "B": Secret("group")])
        #expect(merged?.netrc == "/n" && merged?.httpVersion == .http1)
        #expect(try terms(defaults: defaults).options == defaults && terms(options: own).options == own)
        #expect(try terms().options == nil)
    }

    @Test func aFreshURLAndItsHeadersTakeThePlaceOfTheSources() throws {
        let source = try terms(
            fresh: "https://a.example/f?new", headers: ["X-Key": "old", "Authorization": "kept"],
            freshHeaders: ["x-key": "new"]
        ).source
        #expect(source?.url == "https://a.example/f?new" && source?.ordinal == 1)
        #expect(source?.headers == ["x-key": "new", "Authorization": "kept"])
        #expect(try terms(headers: ["X": "1"]).source == LeaseSource(ordinal: 1, url: Self.url, headers: ["X": "1"]))
    }

    @Test func optionsForOneOriginDoNotGoToAnother() throws {
        var options = options(["AUTHORIZATION": "secret", "Accept": "any"])
        options.cookies = ["c": Secret("secret")]
        options.credentials = .init(user: "u", password: Secret("secret"))
        options.caFile = "/ca"
        let terms = try terms(
            fresh: "https://cdn.example/f", headers: ["authorization": "secret", "Cookie": "secret", "X": "1"],
            freshHeaders: ["Authorization": "fresh"], options: options)
        #expect(terms.source?.headers == ["Authorization": "fresh"])
        #expect(terms.options?.headers == nil)
        #expect(terms.options?.cookies == nil && terms.options?.credentials == nil && terms.options?.caFile == "/ca")
        options.locationTrusted = true
        let trusted = try self.terms(
            fresh: "https://cdn.example/f", headers: ["X": "1"], freshHeaders: ["Authorization": "fresh"],
            options: options)
        #expect(trusted.source?.headers == ["X": "1", "Authorization": "fresh"])
        #expect(trusted.options == options)
    }

    @Test func workWithoutASourceHasNone() throws {
        let terms = try LeaseTerms(
            ordinal: 0, url: nil, headers: [:], freshURL: nil, freshHeaders: [:], options: nil, defaults: nil)
        #expect(terms.source == nil)
    }

    @Test func anInvalidFreshURLIsAnErrorAndGetsNoHeaders() {
        #expect(throws: StoredValueError.self) {
            try terms(fresh: "no URL", headers: ["Authorization": "secret"])
        }
    }
}
