import FoundationEssentials
import MusterAPI
import MusterCore
import Testing

struct StrictDecodingTests {
    @Test(
        arguments: [
            (#"{"name":"g","seald":true}"#, "/seald", "unknown field"),
            (#"{"name":"g","a/b~c":1}"#, "/a~1b~0c", "unknown field"),
            (#"{"name":"g","":1}"#, "/", "unknown field"),
            (#"{"name":"g","limits":{"maxConnections":1,"rate":2}}"#, "/limits/rate", "unknown field"),
            (#"{"name":"g","tasks":[{"urls":[]},{"urls":[],"url":"x"}]}"#, "/tasks/1/url", "unknown field"),
            (#"{"name":"g","deadlineAt":"2026-03-01T00:00:00Z"}"#, "/deadlineAt", "unknown field"),
            (#"{}"#, "/name", "is missing"),
            (#"{"name":null}"#, "/name", "must not be null"),
            (#"{"name":1}"#, "/name", "has the wrong type"),
            (#"{"name":"g","sealed":"yes"}"#, "/sealed", "has the wrong type"),
            (#"{"name":"g","tasks":{}}"#, "/tasks", "has the wrong type"),
            (#"{"name":"g","tasks":[{}]}"#, "/tasks/0/urls", "is missing"),
            (#"{"name":"g","tasks":[{"urls":["a",null]}]}"#, "/tasks/0/urls/1", "must not be null"),
            (#"{"name":"g","tasks":[{"urls":["a",5]}]}"#, "/tasks/0/urls/1", "has the wrong type"),
            (#"{"name":"g","tasks":[{"urls":[],"headers":{"A/B":7}}]}"#, "/tasks/0/headers/A~1B", "has the wrong type"),
            (#"{"name":"g","weight":0.5}"#, "/weight", "must be a whole number of at most 32 bits"),
            (#"{"name":"g","priority":2147483648}"#, "/priority", "must be a whole number of at most 32 bits"),
            (#"{"name":"g","priority":"1"}"#, "/priority", "has the wrong type"),
            (
                #"{"name":"g","limits":{"maxConnections":1e30}}"#, "/limits/maxConnections",
                "must be a whole number of at most 32 bits"
            ),
            (
                #"{"name":"g","tasks":[{"urls":[],"size":1.5}]}"#, "/tasks/0/size",
                "must be a whole number of at most 64 bits"
            ),
            (#"[]"#, "", "has the wrong type"),
            ("", "", "is not JSON"), ("{", "", "is not JSON"), (#"{"name":"g"} x"#, "", "is not JSON"),
        ])
    func whatIsWrongWithAGroupIsNamedByItsPointer(json: String, pointer: String, reason: String) {
        let refusal = refusal(GroupRequest.self, json)
        #expect(
            refusal?.pointer == pointer && refusal?.reason.hasPrefix(reason) == true, "\(String(describing: refusal))")
    }

    @Test func unknownFieldIsRefusedWithTheKnownFields() {
        let refusal = refusal(TaskRequest.self, #"{"url":"http://h/a"}"#)
        #expect(
            refusal?.pointer == "/url" && refusal?.reason.contains(" urls") == true, "\(String(describing: refusal))")
    }

    @Test(
        arguments: [
            (#"{"urls":[],"sha256":"x"}"#, "/sha256"), (#"{"url":"x"}"#, "/url"), (#"{"urls":"x"}"#, "/urls"),
            (#"{"urls":[],"size":1.5}"#, "/size"), (#"{"urls":[],"size":"1"}"#, "/size"),
            (#"{"urls":[],"size":9223372036854775808}"#, "/size"), (#"{"urls":[],"priority":2147483648}"#, "/priority"),
            (#"{"urls":[],"metadata":1e400}"#, "/metadata"), (#"{"urls":[],"digests":["x"]}"#, "/digests"),
            (#"{"urls":[],"digests":{"sha256":null}}"#, "/digests/sha256"),
        ])
    func whatIsWrongWithATaskIsNamedByItsPointer(json: String, pointer: String) {
        #expect(refusal(TaskRequest.self, json)?.pointer == pointer)
    }

    @Test func mistakeInAnArrayIsNamedByItsIndex() {
        #expect(refusal([TaskRequest].self, #"[{"urls":[]},{"urls":[],"x":1}]"#)?.pointer == "/1/x")
        #expect(refusal([TaskRequest].self, #"{"urls":[]}"#)?.pointer == "")
    }

    @Test func nullMeansAbsent() throws {
        let task = try document(
            TaskRequest.self,
            """
            {"urls":["u"],"key":null,"path":null,"size":null,"digests":null,"headers":null,"priority":null,"metadata":null}
            """
        )
        #expect(task == TaskRequest(urls: ["u"]))
        let group = try document(
            GroupRequest.self,
            """
            {"name":"g","sink":null,"sealed":null,"priority":null,"weight":null,"limits":null,"metadata":null,"tasks":null}
            """
        )
        #expect(group == GroupRequest(name: "g"))
        #expect(try document(GroupLimits.self, #"{"maxConnections":null}"#) == GroupLimits())
    }

    @Test(
        arguments: [
            (#"{"keys":[],"key":"a"}"#, "/key"), (#"{"keys":"a"}"#, "/keys"), (#"{"keys":[1]}"#, "/keys/0"), ("[]", ""),
            (#"{"keys":[\#(Array(repeating: "\"k\"", count: 10_001).joined(separator: ","))]}"#, "/keys"),
        ])
    func badVerbIsRefused(json: String, pointer: String) {
        #expect(refusal(VerbRequest.self, json)?.pointer == pointer)
    }

    @Test func verbNeedsNoKeys() throws {
        #expect(try document(VerbRequest.self, "{}").keys == nil)
        #expect(try document(VerbRequest.self, #"{"keys":["a/b"]}"#).keys == ["a/b"])
    }
}

struct GroupRequestTests {
    private static func pointer(_ request: GroupRequest) -> String? {
        do {
            try request.check()
            return nil
        } catch {
            return error.pointer
        }
    }

    @Test(
        arguments: [
            (GroupRequest(name: ""), "/name"), (GroupRequest(name: "a b"), "/name"),
            (GroupRequest(name: ".."), "/name"),
            (GroupRequest(name: String(repeating: "a", count: 201)), "/name"),
            (GroupRequest(name: "g", sink: "a/b"), "/sink"), (GroupRequest(name: "g", sink: ""), "/sink"),
            (GroupRequest(name: "g", priority: 1_001), "/priority"),
            (GroupRequest(name: "g", priority: -1_001), "/priority"),
            (GroupRequest(name: "g", weight: 0), "/weight"), (GroupRequest(name: "g", weight: 1_001), "/weight"),
            (GroupRequest(name: "g", limits: GroupLimits(maxConnections: 0)), "/limits/maxConnections"),
            (GroupRequest(name: "g", limits: GroupLimits(maxConnections: 100_001)), "/limits/maxConnections"),
            (GroupRequest(name: "g", metadata: .string(String(repeating: "x", count: 16_383))), "/metadata"),
            (GroupRequest(name: "g", metadata: .string("a\0b")), "/metadata"),
            (GroupRequest(name: "g"), nil),
            (
                GroupRequest(
                    name: "a.B_c-9",
                    sink: "s",
                    priority: -1_000,
                    weight: 1_000,
                    limits: GroupLimits(maxConnections: 1),
                    metadata: .string(String(repeating: "x", count: 16_382))
                ), nil
            ),
        ] as [(GroupRequest, String?)]
    )
    func impossibleGroupIsRefused(request: GroupRequest, pointer: String?) {
        #expect(Self.pointer(request) == pointer)
    }

    /// PostgreSQL's `jsonb` can't store U+0000, wherever it stands.
    @Test(
        arguments: [
            .string("\0"), .string("a\0"), .array([.integer(1), .string("\0")]), .object(["\0": .null]),
            .object(["a": .object(["b": .array([.object(["c\0": .bool(true)])])])]), .object(["a": .string("b\0c")]),
        ] as [JSONValue]
    )
    func metadataWithANullCharacterIsRefused(metadata: JSONValue) {
        #expect(Self.pointer(GroupRequest(name: "g", metadata: metadata)) == "/metadata")
        #expect(throws: InputRefusal(pointer: "/metadata", reason: "must not contain U+0000, which can't be stored")) {
            try TaskRequest(urls: ["https://example.org/a"], metadata: metadata).validated()
        }
    }

    @Test(
        arguments: [
            .null, .string("\\u0000"), .string("\u{1}"), .object(["0": .integer(0)]),
            .array([.bool(false), .number(0.5)]),
        ] as [JSONValue]
    )
    func otherMetadataIsKept(metadata: JSONValue) throws {
        #expect(Self.pointer(GroupRequest(name: "g", metadata: metadata)) == nil)
        #expect(try TaskRequest(urls: ["https://example.org/a"], metadata: metadata).validated().metadata == metadata)
    }

    @Test func escapedNullCharacterIsFoundInTheDocument() throws {
        let request = try document(GroupRequest.self, #"{"name":"g","metadata":{"a":"\u0000"}}"#)
        #expect(Self.pointer(request) == "/metadata")
    }
}
