import Logging
import MusterTestSupport
import Testing

@testable import MusterCoordinator

@Suite("Groups in trouble are named once")
struct ToldGroupsTests {
    @Test func aGroupIsNamedWhenItsTroubleBeginsAndWhenItComesAgain() {
        let log = RecordedLog()
        let logger = log.logger
        let told = ToldGroups()
        told.tell([("a", "x")], logger)
        told.tell([("a", "x"), ("b", "y")], logger)
        told.tell([("b", "y")], logger)
        told.tell([("a", "x"), ("b", "y")], logger)
        #expect(log.events.compactMap { $0.metadata?[CoordinatorMetadata.group] }.map { "\($0)" } == ["a", "b", "a"])
    }
}
