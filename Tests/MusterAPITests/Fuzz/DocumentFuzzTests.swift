import FoundationEssentials
import MusterAPI
import MusterCore
import MusterTestSupport
import Testing

/// The JSON documents of the wire: what is read is written so that it is read as the same.
@Suite struct DocumentFuzzTests {
    /// Reads the input as a document, and what is written of it.
    private static func read<Document: Codable & Hashable>(
        _ type: Document.Type, _ input: FuzzInput
    ) throws -> Document? {
        guard let document = try? JSONDecoder().decode(type, from: Data(input.bytes)) else { return nil }
        let again = try JSONDecoder().decode(type, from: JSONEncoder().encode(document))
        try input.expect(again == document, "\(type): \(document) becomes \(again)")
        return document
    }

    @Test func groupIsCheckedAndReadAgain() throws {
        let corpus = [
            #"{"name":"g","sink":"s","sealed":true,"priority":-3,"weight":9,"deadline":"2h","metadata":{"a":[1.5,"x"]}}"#,
            #"""
            {"name":"g","limits":{"maxConnections":3,"bytesPerSecond":1024,"between":{"from":"22:00","to":"06:00",
            "timeZone":"UTC"},"timetable":[{"from":"08:00","to":"18:00","bytesPerSecond":2048}]},
            "after":[{"group":"h","on":"finished"}],"onDeadline":"continue"}
            """#,
            #"""
            {"name":"g","tasks":[{"urls":["http://e.org/a"],"size":1}],"policy":{"ifExists":"verify",
            "computeDigests":["md5"]},"resolver":{"url":"https://e.org/r","headers":{"A":"env:T"}},
            "fetch":{"cookies":{"a":"b"},"proxy":"direct"}}
            """#,
        ]
        try ByteFuzzer(corpus).run { input in
            guard let group = try Self.read(GroupRequest.self, input) else { return false }
            guard (try? group.check()) != nil else { return true }
            try input.expect(NameRule.accepts(group.name), "its name is \(group.name)")
            try input.expect(Limits.priority.contains(group.priority ?? 0), "its priority is out of bounds")
            try input.expect(Limits.weight.contains(group.weight ?? 1), "its weight is out of bounds")
            let least = Limits.bytesPerSecond.lowerBound
            let timetable = group.limits?.timetable ?? []
            for rate in timetable.map(\.bytesPerSecond) + [group.limits?.bytesPerSecond ?? least] {
                try input.expect(Limits.bytesPerSecond.contains(rate), "a rate is \(rate)")
            }
            for time in [group.limits?.between?.from, group.limits?.between?.to].compactMap({ $0 }) {
                try input.expect(time.utf8.count == 5, "a time is \(time)")
            }
            let deadline = group.deadline.map { GroupRequest.duration(deadline: $0) != nil } ?? true
            try input.expect(deadline, "its deadline is no duration")
            for name in (group.fetch?.cookies ?? [:]).keys {
                try input.expect(!name.utf8.contains { ";= ,\"\r\n".utf8.contains($0) }, "\(name) is no cookie")
            }
            return true
        }
    }

    @Test func changesAreReadAgain() throws {
        let corpus = [
            #"{"priority":null,"weight":2,"limits":null,"deadline":"1h","after":[],"fetch":{"netrc":"/n"},"metadata":null}"#,
            #"{"limits":{"maxConnections":null,"between":null,"timetable":[]},"onDeadline":null,"resolver":null}"#,
            #"{"maxConnections":3,"bytesPerSecond":null,"pausedUntil":"2026-03-01T12:00:00Z","pauseFor":"30m"}"#,
            #"{"pausedUntil":"300000-01-01T00:00:00Z"}"#,
            #"{"url":"https://e.org","groups":null,"types":["a"],"enabled":false}"#,
            #"{"keys":["a","b"]}"#, #"{"position":7,"log":"x"}"#, #"{"holder":"h","seconds":30}"#,
            #"{"name":"s","url":"https://e.org","secret":"whsec_x","groups":"a*"}"#,
        ]
        try ByteFuzzer(corpus).run { input in
            let patch = try Self.read(GroupPatch.self, input)
            if let patch, (try? patch.check(of: "g")) != nil {
                try input.expect(Limits.weight.contains(patch.weight ?? 1), "the weight is out of bounds")
            }
            let origin = try Self.read(OriginPatch.self, input)
            try input.expect(origin?.pauseFor == nil || origin?.pause != nil, "a pause is none")
            try input.expect((1...100_000).contains(origin?.maxConnections.value ?? 1), "a cap is out of bounds")
            let acknowledged = try Self.read(AcknowledgementRequest.self, input)
            try input.expect(acknowledged?.position ?? 0 >= 0, "a position is negative")
            let hold = try Self.read(ConsumerHoldRequest.self, input)
            try input.expect(Limits.consumerHoldSeconds.contains(hold?.seconds ?? 1), "a hold is out of bounds")
            let others: [Any?] = [
                try Self.read(SubscriptionPatch.self, input), try Self.read(SubscriptionRequest.self, input),
                try Self.read(VerbRequest.self, input), patch, origin, acknowledged, hold,
            ]
            return others.contains { $0 != nil }
        }
    }

    @Test func messagesOfWorkersAreReadAgain() throws {
        let corpus = [
            #"{"name":"w","sinks":["default"],"slots":16,"version":"1","labels":{"z":"a"},"marks":{"d":"a-b"},"previous":3}"#,
            #"""
            {"sequence":2,"settled":1,"reports":[{"chunk":31,"epoch":77,"kind":"progress",
            "durable":{"offset":8,"crc":4294967295}},{"chunk":31,"epoch":77,"kind":"failed",
            "failure":{"kind":"httpStatus(429)","detail":"busy","retryAfter":7,"source":1}}],
            "held":[{"chunk":31,"epoch":77}],"room":3,"waitMilliseconds":20000,"receivedBytes":5,
            "sinks":[{"name":"s","freeBytes":0}],"traffic":[{"budget":"fleet","bytes":1}],
            "revoked":[{"sink":"s","session":4}]}
            """#,
            #"{"id":12,"ttlMilliseconds":30000,"installation":"i"}"#,
            #"""
            {"lost":[{"chunk":1,"epoch":2}],"refused":[],"shrink":[{"lease":{"chunk":1,"epoch":2},"end":9}],
            "drain":false,"ttlMilliseconds":1,"leases":[],"budgets":[{"name":"fleet","bytesPerSecond":1}],
            "addresses":{"refusesPrivate":true,"allowed":["10.0.0.0/8"]}}
            """#,
            #"{"name":"s","mark":"m","isReplaced":true}"#, #"{"url":"https://e.org/a","headers":{"A":"b"}}"#,
        ]
        try ByteFuzzer(corpus).run { input in
            let answer = try Self.read(ResolverAnswer.self, input)
            if let answer, let url = try? answer.checked() {
                let lines = (answer.headers ?? [:]).flatMap { [$0.key, $0.value] } + [url.string]
                let isWhole = lines.allSatisfy { line in !line.utf8.contains { $0 == 0 || $0 == 10 || $0 == 13 } }
                try input.expect(isWhole, "a line of the request is broken")
                try input.expect(!"\(answer)".contains("?"), "the answer is shown as \(answer)")
            }
            let others: [Any?] = [
                try Self.read(SyncRequest.self, input), try Self.read(SyncResponse.self, input),
                try Self.read(SessionRequest.self, input), try Self.read(SessionDocument.self, input),
                try Self.read(SessionSinkRequest.self, input), answer,
            ]
            return others.contains { $0 != nil }
        }
    }

    @Test func answersOfCoordinatorsAreReadAgain() throws {
        let corpus = [
            #"""
            {"key":"k","state":"queued","urls":["u"],"path":"p","priority":0,"bytes":{"done":1,"total":null},
            "contentVersion":1,"digests":{},"attempts":2,"failure":{"kind":"tls","detail":"d",
            "at":"2026-03-01T12:00:00.000Z"},"createdAt":"2026-03-01T12:00:00.000Z","retry":{"number":2}}
            """#,
            #"{"type":"t","title":"t","status":404,"code":"taskNotFound","detail":"d","pointer":"/a/0","line":3}"#,
            #"{"group":"g","files":1,"workersReaching":2,"failure":{"files":1,"detail":"d"},"fate":{"toDelete":1,"kept":2}}"#,
            #"{"key":"http://e.org:80","maxConnections":1,"allowedConnections":1,"connections":0,"bytesPerSecond":0}"#,
            #"{"name":"c","position":1,"behind":2,"acknowledgedAt":"2026-03-01T12:00:00Z"}"#,
        ]
        try ByteFuzzer(corpus).run { input in
            let others: [Any?] = [
                try Self.read(TaskDocument.self, input), try Self.read(Problem.self, input),
                try Self.read(RemovalDocument.self, input), try Self.read(OriginDocument.self, input),
                try Self.read(ConsumerDocument.self, input),
            ]
            return others.contains { $0 != nil }
        }
    }

    @Test func factsOfAnEventBelongToItsType() throws {
        func event(_ type: String, _ data: String) -> String {
            #"""
            {"specversion":"1.0","id":"i","source":"/muster","type":"dev.muster.\#(type).v1","subject":"groups/g",
            "time":"2026-03-01T12:00:00.000Z","sequence":"00000000000000000007","datacontenttype":"application/json",
            "data":\#(data)}
            """#
        }
        let corpus = [
            event("group.overdue", #"{"group":"g","generation":1,"state":"sealed","remaining":3}"#),
            event("task.cancelled", #"{"group":"g","key":"k","path":"p"}"#),
            event("task.failed", #"{"group":"g","key":"k","path":"p","failure":{"kind":"tls","detail":"d"}}"#),
            event(
                "group.succeeded",
                #"""
                {"group":"g","generation":1,"state":"succeeded","sink":"s","metadata":{"a":1},
                "tasks":{"total":1,"succeeded":1,"failed":0,"cancelled":0},"bytes":{"done":1,"total":1}}
                """#),
            event("group.unknown", #"{"generation":9007199254740993.0000000001}"#),
        ]
        try ByteFuzzer(corpus).run { input in
            guard let event = try Self.read(EventDocument.self, input) else { return false }
            try input.expect(event.position >= 0 && event.sequence.utf8.count == 20, "it has no position")
            do {
                let payload = try event.payload()
                try input.expect((payload == nil) == (event.knownType == nil), "a known type has no facts")
                if case .groupEnded(let end)? = payload {
                    try input.expect(end.state == event.knownType?.endOfGroup, "the state is not that of the type")
                }
                return payload != nil
            } catch is DecodingError {
                return false
            }
        }
    }
}
