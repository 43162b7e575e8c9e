import MusterCore
import Testing

@Suite("Types of events") struct EventTypeTests {
    /// These names are in databases and in receivers' programs.
    @Test func namesOfTypesStay() {
        #expect(
            EventType.allCases.map(\.short) == [
                "group.succeeded", "group.failed", "group.cancelled", "group.removed", "group.overdue",
                "task.succeeded",
                "task.failed", "task.cancelled", "task.changed",
            ])
    }

    @Test(arguments: EventType.allCases) func typeIsFoundByItsShortName(type: EventType) {
        #expect(type.rawValue == "dev.muster.\(type.short).v1")
        #expect(EventType(short: type.short) == type)
    }

    @Test func otherTypesAreShortenedTooAndFoundByNoName() {
        #expect(EventType.short("org.example.other") == "org.example.other")
        #expect(EventType.short("dev.muster.group.late.v2") == "group.late.v2")
        #expect(EventType(short: "group.suceeded") == nil && EventType(short: "") == nil)
    }
}
