import MusterAPI
import MusterCore
import Testing

/// Options that use every field. The secrets contain "hunter2", which the tests search for.
private let everything = #"""
    {"headers":{"Authorization":"Bearer hunter2","X-A":"env:TOKEN"},"proxy":"http://u:hunter2@proxy:3128",
    "cookies":{"session":"hunter2"},"cookieFile":"/c","credentials":{"user":"me","password":"hunter2"},"netrc":"/n",
    "clientCertificate":{"certificate":"/cert","key":"/key"},"caFile":"/ca","knownHosts":"/kh","privateKey":"/pk",
    "locationTrusted":true,"decode":true,
    "httpVersion":"2","connectTimeoutSeconds":1,"firstByteTimeoutSeconds":2,"lowSpeedBytesPerSecond":3,"lowSpeedSeconds":4}
    """#

private func pointer(_ json: String) throws -> String? {
    let options = try document(FetchOptions.self, json)
    do {
        try options.check()
        return nil
    } catch {
        #expect(!error.reason.contains("hunter2"), "a secret is shown")
        return error.pointer
    }
}

struct FetchOptionsTests {
    @Test func everyFieldSurvives() throws {
        let options = try document(FetchOptions.self, everything)
        try options.check()
        #expect(options.headers?["Authorization"]?.given == "Bearer hunter2")
        #expect(options.headers?["X-A"]?.form == .environment("TOKEN"))
        #expect(options.clientCertificate == .init(certificate: "/cert", key: "/key"))
        #expect(options.credentials == .init(user: "me", password: Secret("hunter2")))
        #expect(options.httpVersion == .http2 && options.locationTrusted == true && options.decode == true)
        #expect(try document(FetchOptions.self, jsonText(options)) == options)
        #expect(try document(FetchOptions.self, "{}") == FetchOptions())
        #expect(try jsonText(FetchOptions()) == "{}")
    }

    @Test(
        arguments: [
            (#"{"header":{}}"#, "/header"),
            (#"{"credentials":{"user":"a","password":"b","realm":"c"}}"#, "/credentials/realm"),
            (#"{"credentials":{"user":"a"}}"#, "/credentials/password"), (#"{"credentials":"a:b"}"#, "/credentials"),
            (#"{"clientCertificate":{"certificate":"/a"}}"#, "/clientCertificate/key"),
            (#"{"clientCertificate":{"certificate":"/a","key":"/b","password":"c"}}"#, "/clientCertificate/password"),
            (#"{"headers":{"A":1}}"#, "/headers/A"), (#"{"headers":{"A":null}}"#, "/headers/A"),
            (#"{"cookies":["a"]}"#, "/cookies"),
            (#"{"httpVersion":"3"}"#, "/httpVersion"), (#"{"connectTimeoutSeconds":1.5}"#, "/connectTimeoutSeconds"),
            (#"{"lowSpeedSeconds":"1"}"#, "/lowSpeedSeconds"), (#"{"insecure":true}"#, "/insecure"),
        ])
    func whatIsNotUnderstoodIsRefused(json: String, pointer: String) {
        #expect(refusal(FetchOptions.self, json)?.pointer == pointer)
    }

    @Test(
        arguments: [
            (#"{"headers":{"A B":"x"}}"#, "/headers/A B"), (#"{"headers":{"Range":"bytes=0-"}}"#, "/headers/Range"),
            (#"{"headers":{"A":"hunter2\r\nB: c"}}"#, "/headers/A"),
            (#"{"headers":{"A":"env:hunter2 x"}}"#, "/headers/A"),
            (#"{"headers":{"A":"file:hunter2"}}"#, "/headers/A"),
            (#"{"headers":{"accept":"a","Accept":"b"}}"#, "/headers/accept"),
            (#"{"cookies":{"":"hunter2"}}"#, "/cookies/"), (#"{"cookies":{"a=b":"x"}}"#, "/cookies/a=b"),
            (#"{"cookies":{"a b":"x"}}"#, "/cookies/a b"), (#"{"cookies":{"a":"hunter2; b=c"}}"#, "/cookies/a"),
            (#"{"cookies":{"a":"hunter2\n"}}"#, "/cookies/a"), (#"{"cookies":{"a":"env:"}}"#, "/cookies/a"),
            (#"{"cookies":{"z z":"x","a a":"x"}}"#, "/cookies/a a"),
            (#"{"proxy":""}"#, "/proxy"), (#"{"proxy":"proxy:3128"}"#, "/proxy"),
            (#"{"proxy":"ftp://hunter2/"}"#, "/proxy"),
            (#"{"proxy":"http://"}"#, "/proxy"), (#"{"proxy":"none"}"#, "/proxy"),
            (#"{"proxy":"file:proxy"}"#, "/proxy"),
            (#"{"credentials":{"user":"a:b","password":"hunter2"}}"#, "/credentials/user"),
            (#"{"credentials":{"user":"a","password":"hunter2\u0000"}}"#, "/credentials/password"),
            (#"{"credentials":{"user":"a","password":"env:2hunter2"}}"#, "/credentials/password"),
            (#"{"caFile":"ca.pem"}"#, "/caFile"), (#"{"netrc":"~/.netrc"}"#, "/netrc"),
            (#"{"cookieFile":""}"#, "/cookieFile"),
            (#"{"knownHosts":"/a\u0000"}"#, "/knownHosts"), (#"{"privateKey":"./id"}"#, "/privateKey"),
            (#"{"caFile":"/\#(String(repeating: "a", count: 8_192))"}"#, "/caFile"),
            (#"{"clientCertificate":{"certificate":"a","key":"/b"}}"#, "/clientCertificate/certificate"),
            (#"{"clientCertificate":{"certificate":"/a","key":"b"}}"#, "/clientCertificate/key"),
            (#"{"connectTimeoutSeconds":0}"#, "/connectTimeoutSeconds"),
            (#"{"firstByteTimeoutSeconds":3601}"#, "/firstByteTimeoutSeconds"),
            (#"{"lowSpeedSeconds":-1}"#, "/lowSpeedSeconds"),
            (#"{"lowSpeedBytesPerSecond":-1}"#, "/lowSpeedBytesPerSecond"),
            (#"{"lowSpeedBytesPerSecond":1073741825}"#, "/lowSpeedBytesPerSecond"),
        ])
    func whatIsImpossibleIsNamedByItsPointer(json: String, expected: String) throws {
        #expect(try pointer(json) == expected)
    }

    @Test(
        arguments: [
            #"{"proxy":"direct"}"#, #"{"proxy":"environment"}"#, #"{"proxy":"socks5h://u:p@[::1]:1080"}"#,
            #"{"proxy":"env:PROXY"}"#,
            #"{"proxy":"value:HTTPS://proxy"}"#, #"{"cookies":{"a":"","b":"file:/a;b"}}"#, #"{"headers":{"A":""}}"#,
            #"{"lowSpeedBytesPerSecond":0}"#, #"{"credentials":{"user":"a","password":"value:"}}"#,
        ])
    func whatIsPossibleIsAccepted(json: String) throws {
        #expect(try pointer(json) == nil)
    }

    @Test func patienceDoublesWithEachTryUpToTwoMinutesUnlessTheOptionsSayOtherwise() {
        var options = FetchOptions()
        let patient = [1, 2, 3, 1_000].map { options.withPatience(after: $0) }
        #expect(patient.map(\.firstByteTimeoutSeconds) == [120, 120, 120, 120])
        #expect(patient.map(\.lowSpeedSeconds) == [60, 120, 120, 120])
        (options.firstByteTimeoutSeconds, options.lowSpeedSeconds) = (2, 300)
        #expect(options.withPatience(after: 3) == options)
    }

    @Test func cookiesAreBounded() throws {
        var options = FetchOptions()
        options.cookies = Dictionary(uniqueKeysWithValues: (0...64).map { ("c\($0)", Secret("x")) })
        #expect(throws: InputRefusal(pointer: "/cookies", reason: "at most 64 cookies")) { try options.check() }
    }

    @Test func mistakeInATaskOrAGroupIsNamedFromItsRoot() throws {
        let task = try document(TaskRequest.self, #"{"urls":["https://h/a"],"fetch":{"caFile":"x"}}"#)
        #expect(
            throws: InputRefusal(pointer: "/fetch/caFile", reason: "must be an absolute path on the worker's machine")
        ) {
            try task.validated()
        }
        let group = try document(GroupRequest.self, #"{"name":"g","fetch":{"caFile":"x"}}"#)
        #expect(
            throws: InputRefusal(pointer: "/fetch/caFile", reason: "must be an absolute path on the worker's machine")
        ) {
            try group.check()
        }
        let resolving = try document(GroupRequest.self, #"{"name":"g","resolver":{"url":"sftp://h/"}}"#)
        #expect(throws: InputRefusal(pointer: "/resolver/url", reason: "a resolver is asked by http or https")) {
            try resolving.check()
        }
        #expect(refusal(GroupRequest.self, #"{"name":"g","fetch":{"x":1}}"#)?.pointer == "/fetch/x")
        #expect(refusal(GroupRequest.self, #"{"name":"g","policy":{"x":1}}"#)?.pointer == "/policy/x")
        #expect(refusal(TaskRequest.self, #"{"urls":[],"fetch":{"x":1}}"#)?.pointer == "/fetch/x")
    }

    @Test func nothingShowsASecret() throws {
        let options = try document(FetchOptions.self, everything)
        var group = GroupRequest(name: "g")
        group.fetch = options
        var dumped = ""
        dump(group, to: &dumped)
        for shown in [
            "\(options)", String(describing: options), String(reflecting: options), "\(group)",
            String(reflecting: [group]), dumped,
        ] {
            #expect(!shown.contains("hunter2"))
            // Fields that are no secrets are still shown.
            #expect(shown.contains("cookieFile"))
        }
    }
}

struct FetchOptionsMergeTests {
    @Test func tasksOptionsOverrideThoseOfTheGroup() throws {
        let group = try document(FetchOptions.self, everything)
        #expect(FetchOptions().over(group) == group)
        #expect(group.over(FetchOptions()) == group)
        let task = try document(
            FetchOptions.self,
            #"""
            {"headers":{"authorization":"own","X-B":"b"},"proxy":"direct","cookies":{"session":"own","lang":"de"},
            "cookieFile":"/c2","credentials":{"user":"you","password":"p"},"netrc":"/n2",
            "clientCertificate":{"certificate":"/cert2","key":"/key2"},
            "caFile":"/ca2","knownHosts":"/kh2","privateKey":"/pk2","locationTrusted":false,"decode":false,"httpVersion":"1.1","connectTimeoutSeconds":11,
            "firstByteTimeoutSeconds":12,"lowSpeedBytesPerSecond":13,"lowSpeedSeconds":14}
            """#
        )
        let merged = task.over(group)
        #expect(merged.headers?.mapValues(\.given) == ["authorization": "own", "X-A": "env:TOKEN", "X-B": "b"])
        #expect(merged.cookies?.mapValues(\.given) == ["session": "own", "lang": "de"])
        // All other fields are the task's own.
        var rest = merged
        rest.headers = task.headers
        rest.cookies = task.cookies
        #expect(rest == task)
    }

    @Test func oneFieldAloneIsReplacedAlone() throws {
        let group = try document(FetchOptions.self, everything)
        var task = FetchOptions()
        task.caFile = "/own"
        var expected = group
        expected.caFile = "/own"
        #expect(task.over(group) == expected)
    }

    /// Names differ in case alone: the task's field replaces every spelling of the group's.
    @Test func headersAreMergedWithoutRegardToCase() throws {
        var (task, group) = (FetchOptions(), FetchOptions())
        group.headers = ["X-TOKEN": Secret("group"), "Accept": Secret("a")]
        task.headers = ["x-token": Secret("task")]
        #expect(task.over(group).headers?.mapValues(\.given) == ["x-token": "task", "Accept": "a"])
        task.headers = [:]
        #expect(task.over(group).headers == group.headers)
        #expect(task.over(FetchOptions()).headers == [:])
    }
}
