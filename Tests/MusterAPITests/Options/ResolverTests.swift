import MusterAPI
import MusterCore
import Testing

private func pointer(_ check: () throws(InputRefusal) -> Void) -> String? {
    do {
        try check()
        return nil
    } catch {
        #expect(!error.reason.contains("hunter2"), "a secret is shown")
        return error.pointer
    }
}

/// Row 21 of the range contract.
struct ResolverTests {
    @Test func resolverSurvives() throws {
        let json = #"{"headers":{"Authorization":"env:TOKEN"},"url":"https://resolver.example.org/fresh"}"#
        let resolver = try document(Resolver.self, json)
        try resolver.check()
        #expect(resolver.headers?["Authorization"]?.form == .environment("TOKEN"))
        #expect(try jsonText(resolver) == json)
        #expect(try document(Resolver.self, #"{"url":"http://h/"}"#) == Resolver(url: "http://h/"))
    }

    @Test(
        arguments: [
            (#"{}"#, "/url"), (#"{"url":null}"#, "/url"), (#"{"url":"http://h/","method":"GET"}"#, "/method"),
            (#"{"url":"http://h/","headers":{"A":1}}"#, "/headers/A"),
        ])
    func whatIsNotUnderstoodIsRefused(json: String, pointer: String) {
        #expect(refusal(Resolver.self, json)?.pointer == pointer)
    }

    @Test(
        arguments: [
            ("", [:], "/url"), ("resolver", [:], "/url"), ("ftp://h/", [:], "/url"), ("sftp://h/", [:], "/url"),
            ("file:///hunter2", [:], "/url"), ("https://u:hunter2@h/", [:], "/url"), ("https://h/ x", [:], "/url"),
            ("https://h/", ["Host": "x"], "/headers/Host"), ("https://h/", ["A": "hunter2\n"], "/headers/A"),
            ("https://h/", ["A": "file:hunter2"], "/headers/A"), ("https://h/", ["A": "hunter2"], nil),
            ("http://h", [:], nil),
        ] as [(String, [String: String], String?)]
    )
    func impossibleResolverIsRefused(url: String, headers: [String: String], expected: String?) {
        let resolver = Resolver(url: url, headers: headers.mapValues { Secret($0) })
        #expect(pointer { () throws(InputRefusal) in try resolver.check() } == expected)
    }

    @Test func questionSurvives() throws {
        let question = ResolverQuestion(group: "g", key: "a/b", url: "https://h/a", source: 1, status: 403)
        #expect(try jsonText(question) == #"{"group":"g","key":"a/b","source":1,"status":403,"url":"https://h/a"}"#)
        #expect(try document(ResolverQuestion.self, jsonText(question)) == question)
    }

    @Test(
        arguments: [
            (#"{"url":"https://h/a?sig=hunter2"}"#, nil),
            (#"{"url":"sftp://h/a","headers":{"A":"hunter2"},"expires":5}"#, nil),
            (#"{"url":"file:///hunter2"}"#, "/url"), (#"{"url":"https://u:hunter2@h/"}"#, "/url"),
            (#"{"url":""}"#, "/url"),
            (#"{"url":"https://h/","headers":{"Range":"hunter2"}}"#, "/headers/Range"),
            (#"{"url":"https://h/","headers":{"A":"hunter2","a":"hunter2"}}"#, "/headers/a"),
            (#"{"url":"https://h/","headers":{"A":"hunter2\r\n"}}"#, "/headers/A"),
        ])
    func resolverAnswerIsCheckedLikeASource(json: String, expected: String?) throws {
        let answer = try document(ResolverAnswer.self, json)
        #expect(pointer { () throws(InputRefusal) in _ = try answer.checked() } == expected)
        #expect(try document(ResolverAnswer.self, jsonText(answer)) == answer)
    }

    @Test(arguments: [#"{}"#, #"{"url":7}"#, #"{"url":"u","headers":{"A":7}}"#, "[]", "", "\"https://h/\""])
    func malformedResolverAnswerIsRefused(json: String) {
        #expect(refusal(ResolverAnswer.self, json) != nil)
    }

    @Test func nothingShowsASecret() throws {
        let answer = ResolverAnswer(url: "https://h/a?signature=hunter2", headers: ["Authorization": "hunter2"])
        let resolver = Resolver(url: "https://h/", headers: ["Authorization": Secret("hunter2")])
        let lease = LeaseName(chunk: ChunkID(1), epoch: LeaseEpoch(2))
        let report = Report(lease: lease, kind: .resolved, resolved: answer)
        var dumped = ""
        dump(report, to: &dumped)
        dump(resolver, to: &dumped)
        for shown in [
            "\(answer)", String(reflecting: answer), "\(report)", String(reflecting: report), "\(resolver)",
            String(reflecting: resolver), dumped,
        ] {
            #expect(!shown.contains("hunter2"), "\(shown)")
            #expect(shown.contains("https://h"))
        }
    }

    /// The worker reports the resolver's answer to the coordinator.
    @Test func reportOfAnAnswerSurvives() throws {
        let lease = LeaseName(chunk: ChunkID(1), epoch: LeaseEpoch(2))
        let report = Report(
            lease: lease, kind: .resolved, resolved: ResolverAnswer(url: "https://h/a", headers: ["A": "b"]))
        let json = #"{"chunk":1,"epoch":2,"kind":"resolved","resolved":{"headers":{"A":"b"},"url":"https://h/a"}}"#
        #expect(try jsonText(report) == json)
        #expect(try document(Report.self, json) == report)
    }
}
