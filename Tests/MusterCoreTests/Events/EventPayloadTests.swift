import FoundationEssentials
import MusterCore
import Testing

/// How strictly the facts of events are read. What the database writes is read in the store's tests.
@Suite("Facts of events") struct EventPayloadTests {
    private static let end =
        #"{"group":"g","generation":2,"state":"failed","sink":"s","metadata":null,"#
        + #""tasks":{"total":1,"succeeded":0,"failed":1,"cancelled":0},"bytes":{"done":1,"total":2}}"#

    private func payload(_ type: EventType, _ data: String) throws -> EventPayload {
        try payload(type.rawValue, data)
    }

    private func payload(_ type: String, _ data: String) throws -> EventPayload {
        try JSONDecoder().decode(EventPayload.self, from: Data(#"{"type":"\#(type)","data":\#(data)}"#.utf8))
    }

    @Test func factsAreReadByTheirNames() throws {
        guard case .groupEnded(let end) = try payload(.groupFailed, Self.end) else {
            Issue.record("not the end of a group")
            return
        }
        #expect(end.group == "g" && end.generation == 2 && end.state == .failed && end.metadata == .null)
        #expect(end.tasks.failed == 1 && end.bytes.total == 2)
        let cancel = try payload(.taskCancelled, #"{"group":"g","key":"k","path":"p"}"#)
        #expect(cancel.group == "g" && cancel.key == "k")
    }

    @Test(
        arguments: [
            (.groupSucceeded, end),
            (.groupFailed, String(end.dropLast()) + #","more":1}"#),
            (.groupFailed, #"{"group":"g","generation":2}"#),
            (.groupRemoved, #"{"group":"g","generation":1,"state":"gone"}"#),
            (.taskCancelled, #"{"group":"g","key":"k","path":"p","why":"x"}"#),
            (.taskCancelled, #"{"group":"g","key":null,"path":"p"}"#),
            (.taskFailed, #"{"group":"g","key":"k","path":"p","failure":{"kind":"new","detail":"d"}}"#),
            (.taskFailed, #"{"group":"g","key":"k","path":"p","failure":{"kind":"dns","detail":"d","more":1}}"#),
        ] as [(EventType, String)])
    func factsThatAreNotThoseOfTheTypeAreRefused(type: EventType, data: String) {
        #expect(throws: DecodingError.self) { try payload(type, data) }
    }

    @Test func typeThatIsNotListedIsRefused() {
        #expect(throws: DecodingError.self) { try payload("dev.muster.group.late.v1", Self.end) }
    }

    @Test func heldFileIsReadStrictly() throws {
        func read(_ fields: String...) throws -> HeldFile {
            let text = #"{"path":"p","# + fields.joined(separator: ",") + "}"
            return try JSONDecoder().decode(HeldFile.self, from: Data(text.utf8))
        }
        let representation = #""representation":{"size":1,"etag":null,"lastModified":null,"isDateStrong":true}"#
        let file = try read(representation, #""crc":4294967295"#, #""digests":{"md5":"00"},"effectiveURL":null"#)
        #expect(file.crc == .max && file.representation.isDateStrong == true && file.effectiveURL == nil)
        #expect(throws: DecodingError.self) { try read(representation, #""crc":4294967296,"digests":{}"#) }
        #expect(throws: DecodingError.self) { try read(representation, #""crc":1,"digests":null"#) }
        #expect(throws: DecodingError.self) { try read(representation, #""crc":1"#) }
        #expect(throws: DecodingError.self) { try read(representation, #""crc":1,"digests":{},"more":1"#) }
        #expect(throws: DecodingError.self) { try read(#""representation":{"more":1},"crc":1,"digests":{}"#) }
    }
}
