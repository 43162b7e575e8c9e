import Logging
import MusterTestSupport
import Synchronization
import Testing

@testable import MusterCoordinator

@Suite("Groups in trouble are named once")
struct ToldGroupsTests {
    /// Keeps which groups are named in the log.
    private struct Names: LogHandler {
        let names: Observed<[String]>
        var metadata: Logger.Metadata = [:]
        var logLevel: Logger.Level = .trace

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) {
            guard let group = event.metadata?[CoordinatorMetadata.group] else { return }
            names.update { $0.append("\(group)") }
        }
    }

    @Test func aGroupIsNamedWhenItsTroubleBeginsAndWhenItComesAgain() {
        let names = Observed<[String]>([])
        let logger = Logger(label: "test") { _ in Names(names: names) }
        let told = ToldGroups()
        told.tell([("a", "x")], logger)
        told.tell([("a", "x"), ("b", "y")], logger)
        told.tell([("b", "y")], logger)
        told.tell([("a", "x"), ("b", "y")], logger)
        #expect(names.value == ["a", "b", "a"])
    }
}
