import FoundationEssentials
import MusterAPI
import MusterCore
import Testing

private let noon = Timestamp(microseconds: 1_772_366_400_000_000)
private let later = Timestamp(microseconds: 1_772_366_401_250_000)

/// The documents that clients read. Their field names, and which fields are written as `null`, are part of the contract.
struct DocumentTests {
    @Test func newTaskWritesWhatIsUnknownAsNull() throws {
        let task = TaskDocument(
            key: "a/b", state: .queued, urls: ["https://example.org/a"], path: "a/b", createdAt: noon)
        let json =
            #"{"attempts":0,"bytes":{"done":0,"total":null},"contentVersion":1,"createdAt":"2026-03-01T12:00:00.000Z","#
            + #""digests":{},"effectiveURL":null,"etaSeconds":null,"etag":null,"failure":null,"finishedAt":null,"key":"a/b","lastModified":null,"#
            + #""path":"a/b","priority":0,"startedAt":null,"state":"queued","urls":["https://example.org/a"]}"#
        #expect(try jsonText(task) == json)
        #expect(try document(TaskDocument.self, json) == task)
    }

    @Test func failedTaskWritesEverything() throws {
        var task = TaskDocument(key: "k", state: .failed, urls: ["u"], path: "p", createdAt: noon)
        task.size = 9
        task.priority = -1
        task.metadata = .object(["a": .integer(1)])
        task.bytes = .init(done: 3, total: 9)
        task.contentVersion = 2
        task.etag = "\"x\""
        task.lastModified = "then"
        task.effectiveURL = "v"
        task.digests = ["md5": "00"]
        task.attempts = 8
        task.failure = TaskFailure(kind: .httpStatus(503), detail: "busy", at: later)
        task.startedAt = noon
        task.finishedAt = later
        let json =
            #"{"attempts":8,"bytes":{"done":3,"total":9},"contentVersion":2,"createdAt":"2026-03-01T12:00:00.000Z","#
            + #""digests":{"md5":"00"},"effectiveURL":"v","etaSeconds":null,"etag":"\"x\"","#
            + #""failure":{"at":"2026-03-01T12:00:01.250Z","detail":"busy","kind":"httpStatus(503)"},"#
            + #""finishedAt":"2026-03-01T12:00:01.250Z","key":"k","lastModified":"then","metadata":{"a":1},"path":"p","#
            + #""priority":-1,"size":9,"startedAt":"2026-03-01T12:00:00.000Z","state":"failed","urls":["u"]}"#
        #expect(try jsonText(task) == json)
        #expect(try document(TaskDocument.self, json) == task)
    }

    @Test func groupWritesWhatIsUnknownAsNull() throws {
        var group = GroupDocument(name: "g", state: .open, sink: "default", createdAt: noon)
        group.tasks = .init(
            total: 21, queued: 1, active: 2, paused: 3, finalizing: 4, succeeded: 5, failed: 6, cancelled: 7)
        group.bytes = .init(done: 1, total: 2, unknownTasks: 3)
        group.notes = ["why"]
        let json =
            #"{"bytes":{"done":1,"total":2,"unknownTasks":3},"bytesPerSecond":0,"createdAt":"2026-03-01T12:00:00.000Z","#
            + #""deadlineAt":null,"etaSeconds":null,"finishedAt":null,"generation":1,"limits":{},"name":"g","notes":["why"],"priority":0,"#
            + #""sealed":false,"sink":"default","state":"open","tasks":{"active":2,"cancelled":7,"failed":6,"finalizing":4,"#
            + #""paused":3,"queued":1,"succeeded":5,"total":21},"weight":1}"#
        #expect(try jsonText(group) == json)
        #expect(try document(GroupDocument.self, json) == group)
    }

    @Test func finishedGroupSurvives() throws {
        var group = GroupDocument(name: "g", state: .succeeded, sink: "s", createdAt: noon)
        group.generation = 3
        group.priority = 5
        group.weight = 9
        group.limits = GroupLimits(maxConnections: 4)
        group.metadata = .array([.string("x")])
        group.tasks = .init(total: 1, succeeded: 1)
        group.bytes = .init(done: 2, total: 2, unknownTasks: 0)
        group.bytesPerSecond = 7
        group.etaSeconds = 0
        group.finishedAt = later
        let json = try jsonText(group)
        #expect(json.contains(#""etaSeconds":0"#))
        #expect(json.contains(#""finishedAt":"2026-03-01T12:00:01.250Z""#))
        #expect(json.contains(#""limits":{"maxConnections":4}"#))
        #expect(try document(GroupDocument.self, json) == group)
    }

    @Test(arguments: [("7", #"{"items":[{"added":1,"existing":0}],"next":"7"}"#), (nil, #"{"items":[],"next":null}"#)])
    func pageSaysWhetherThereIsAnother(next: String?, json: String) throws {
        let page = Page(items: next == nil ? [] : [AddedDocument(added: 1, existing: 0)], next: next)
        #expect(try jsonText(page) == json)
        let read = try document(Page<AddedDocument>.self, json)
        #expect(read.items == page.items)
        #expect(read.next == next)
    }

    @Test func missingNextIsTheLastPage() throws {
        #expect(try document(Page<AddedDocument>.self, #"{"items":[]}"#).next == nil)
    }

    @Test(
        arguments: [
            (0, "00000000000000000000"), (1, "00000000000000000001"), (42, "00000000000000000042"),
            (Int64.max, "09223372036854775807"),
        ] as [(Int64, String)]
    )
    func sequenceIsPaddedSoThatTextsSortAsNumbersDo(position: Int64, sequence: String) {
        let event = EventDocument(id: "i", type: "t", subject: "s", time: noon, position: position, data: .null)
        #expect(event.sequence == sequence)
        #expect(event.position == position)
    }

    @Test func eventWithoutAPositionIsRefused() throws {
        let event = EventDocument(id: "i", type: "t", subject: "s", time: noon, position: 7, data: .null)
        let json = try jsonText(event)
        for sequence in ["", "x", "-0000000000000000007"] {
            let other = json.replacing("00000000000000000007", with: sequence)
            #expect(throws: DecodingError.self) { try document(EventDocument.self, other) }
        }
    }

    @Test func factsOfAnEventAreReadByItsType() throws {
        func event(_ type: String, _ data: JSONValue) -> EventDocument {
            EventDocument(id: "i", type: type, subject: "s", time: noon, position: 7, data: data)
        }
        let data: [String: JSONValue] = ["group": .string("g"), "key": .string("k"), "path": .string("p")]
        #expect(try event("dev.muster.task.cancelled.v1", .object(data)).payload()?.key == "k")
        #expect(try event("dev.muster.task.of-tomorrow.v1", .object(data)).payload() == nil)
        #expect(throws: DecodingError.self) {
            try event("dev.muster.task.cancelled.v1", .object(data.merging(["more": .null]) { $1 })).payload()
        }
    }

    @Test func eventIsACloudEvent() throws {
        let event = EventDocument(
            id: "grp-7-1-succeeded",
            type: "dev.muster.group.succeeded.v1",
            subject: "groups/g",
            time: noon,
            position: 42,
            data: .object(["group": .string("g")])
        )
        let json =
            #"{"data":{"group":"g"},"datacontenttype":"application/json","id":"grp-7-1-succeeded","#
            + #""sequence":"00000000000000000042","source":"/muster","specversion":"1.0","subject":"groups/g","#
            + #""time":"2026-03-01T12:00:00.000Z","type":"dev.muster.group.succeeded.v1"}"#
        #expect(try jsonText(event) == json)
        #expect(try document(EventDocument.self, json) == event)
        let stretch = EventsDocument(items: [event], next: 42, log: "l")
        #expect(try jsonText(stretch) == #"{"items":[\#(json)],"log":"l","next":42}"#)
    }

    @Test func taskThatIsSubmittedSurvives() throws {
        let task = TaskRequest(
            urls: ["u", "v"],
            key: "k",
            path: "p",
            size: 1,
            digests: ["sha256": "x"],
            headers: ["A": "b"],
            priority: 2,
            metadata: .bool(true)
        )
        let json =
            #"{"digests":{"sha256":"x"},"headers":{"A":"b"},"key":"k","metadata":true,"path":"p","priority":2,"size":1,"#
            + #""urls":["u","v"]}"#
        #expect(try jsonText(task) == json)
        #expect(try document(TaskRequest.self, json) == task)
        #expect(try jsonText(TaskRequest(urls: ["u"])) == #"{"urls":["u"]}"#)
    }

    @Test func headersAreNeverPartOfATaskThatIsReadBack() throws {
        let names = Mirror(
            reflecting: try document(
                TaskDocument.self,
                #"{"attempts":0,"bytes":{"done":0},"contentVersion":1,"createdAt":"2026-03-01T12:00:00Z","digests":{},"#
                    + #""key":"k","path":"p","priority":0,"state":"queued","urls":[],"headers":{"Authorization":"secret"}}"#
            )
        ).children.compactMap(\.label)
        #expect(!names.contains("headers"))
    }

    @Test func fleetDocumentsSurvive() throws {
        var worker = WorkerDocument(
            name: "w", session: SessionID(3), version: "1", startedAt: noon, lastSeenAt: later)
        worker.sinks = [SinkStatus(name: "s")]
        worker.slots = 4
        worker.leases = 2
        worker.bytesPerSecond = 9
        worker.labels = ["zone": "a"]
        worker.bytes = LeaseProgress(done: 1, total: 5, unknownLeases: 2)
        let json =
            #"{"bytes":{"done":1,"total":5,"unknownLeases":2},"bytesPerSecond":9,"etaSeconds":null,"labels":{"zone":"a"},"lastSeenAt":"2026-03-01T12:00:01.250Z","leases":2,"name":"w","#
            + #""session":3,"sinks":[{"name":"s"}],"slots":4,"startedAt":"2026-03-01T12:00:00.000Z","state":"ready","#
            + #""version":"1"}"#
        #expect(try jsonText(worker) == json)
        #expect(try document(WorkerDocument.self, json) == worker)
        var origin = OriginDocument(
            key: "https://h:443", maxConnections: 8, allowedConnections: 4, connections: 1)
        origin.pausedUntil = later
        origin.bytesPerSecond = 7
        origin.etaSeconds = 8
        #expect(
            try jsonText(origin)
                == #"{"allowedConnections":4,"bytesPerSecond":7,"bytesPerSecondLimit":null,"connections":1,"etaSeconds":8,"key":"https://h:443","limitedAt":null,"#
                + #""maxConnections":8,"pausedUntil":"2026-03-01T12:00:01.250Z"}"#
        )
        #expect(try document(OriginDocument.self, jsonText(origin)) == origin)
    }
}
