import ArgumentParser
import MusterAPI
import MusterCore
import Testing

@testable import MusterCommandLine

@Suite("Listings")
struct ListingTests {
    @Test func aListingIsReadPageByPageToItsEnd() async throws {
        let pages: [String?: Page<Int>] = [
            nil: Page(items: [1, 2], next: "2"), "2": Page(items: [3, 4], next: "4"), "4": Page(items: [], next: nil),
        ]
        #expect(try await Page.all { try #require(pages[$0]) } == [1, 2, 3, 4])
    }

    @Test func aSubscriptionIsSwitchedByName() throws {
        let on = try MusterCommand.parseAsRoot(["subscriptions", "enable", "ci", "--json"])
        let command = try #require(on as? SubscriptionsEnableCommand)
        #expect(command.name == "ci" && command.global.json && SubscriptionsEnableCommand.enables)
        #expect(SubscriptionsEnableCommand.section == "subscriptions")
        let off = try MusterCommand.parseAsRoot(["subscriptions", "disable", "ci"])
        #expect(off is SubscriptionsDisableCommand && !SubscriptionsDisableCommand.enables)
    }

    @Test func theTableOfDeliveries() {
        func delivery(_ id: Int64, _ state: DeliveryState, tries: Int32, _ failure: String?) -> DeliveryDocument {
            var delivery = DeliveryDocument(
                id: id, subscription: "ci", state: state, event: "grp-7-1-failed", type: "dev.muster.group.failed.v1",
                subject: "groups/g", position: 42)
            delivery.attempts = tries
            delivery.triedAt = Samples.moment
            delivery.status = failure == nil ? 204 : 500
            delivery.failure = failure
            return delivery
        }
        let table = DeliveriesCommand.table([
            delivery(1, .delivered, tries: 2, "the receiver answered 500"),
            delivery(2, .dead, tries: 10, "the receiver answered 500"),
            // Delivered once, and to be delivered again: no failure.
            delivery(3, .pending, tries: 0, nil),
        ])
        #expect(
            table.lines() == [
                "ID  STATE      TRIES  SUBSCRIPTION  EVENT  TYPE          SUBJECT   NEXT TRY      FAILURE",
                " 1  delivered      2  ci               42  group.failed  groups/g  -",
                " 2  dead          10  ci               42  group.failed  groups/g  -             the receiver answered 500",
                " 3  pending        0  ci               42  group.failed  groups/g  once enabled",
            ])
    }

    @Test func aDisabledSubscriptionIsListedWithTheDeliveriesThatWait() {
        func subscription(
            _ name: String, enabled: Bool, pending: Int64, _ reason: String? = nil
        ) -> SubscriptionDocument {
            var subscription = SubscriptionDocument(
                name: name, url: "https://example.org", position: 7, createdAt: Samples.moment)
            subscription.enabled = enabled
            subscription.disabledReason = reason
            subscription.pending = pending
            return subscription
        }
        let gone = "the receiver answered 410: it wants no more, and that is a reason of some length"
        let subscriptions = [
            subscription("a", enabled: true, pending: 3), subscription("b", enabled: false, pending: 0, gone),
            subscription("c", enabled: false, pending: 1), subscription("d", enabled: false, pending: 2),
            subscription("e", enabled: false, pending: Limits.deliveriesCounted),
        ]
        // A reason is a whole sentence, too wide for a column.
        #expect(SubscriptionsListCommand.table(subscriptions).lines(width: 80).allSatisfy { $0.count <= 80 })
        #expect(SubscriptionsListCommand.table(subscriptions).lines()[2].hasPrefix("b     disabled        0     0"))
        #expect(SubscriptionsListCommand.table(subscriptions).lines()[5].hasPrefix("e     disabled    1000+     0"))
        #expect(
            SubscriptionsListCommand.notes(subscriptions) == [
                "b is disabled: \(gone)",
                "1 pending delivery to c waits until it is enabled: muster subscriptions enable c",
                "2 pending deliveries to d wait until it is enabled: muster subscriptions enable d",
                "at least 1000 pending deliveries to e wait until it is enabled: muster subscriptions enable e",
            ])
    }

    @Test func theTableOfWorkers() {
        let sinks = [
            SinkStatus(name: "default"), SinkStatus(name: "archive", parked: .storageFull, detail: "4 KiB are lacking"),
        ]
        func worker(
            _ name: String, _ state: String, limit: Int64?, bytes: LeaseProgress? = nil, eta: Int64? = nil
        )
            -> WorkerDocument
        {
            var worker = WorkerDocument(
                name: name, session: SessionID(7), version: "1.0", startedAt: Samples.moment, lastSeenAt: Samples.moment
            )
            worker.state = state
            worker.sinks = sinks
            worker.slots = 16
            worker.leases = 3
            worker.bytesPerSecond = 36_805_017
            worker.bytesPerSecondLimit = limit
            worker.bytes = bytes
            worker.etaSeconds = eta
            return worker
        }
        let workers = [worker("a", "ready", limit: 41_943_040), worker("b", "draining", limit: nil)]
        #expect(
            WorkersCommand.troubles(workers) == [
                "the sink \"archive\" is in trouble at a: 4 KiB are lacking",
                "the sink \"archive\" is in trouble at b: 4 KiB are lacking",
            ])
        let twins = workers.map { worker in
            var twin = worker
            twin.name = "w"
            twin.sharesName = true
            twin.sinks = []
            return twin
        }
        #expect(
            WorkersCommand.troubles(twins) == [
                "several live workers are called w: start each of them with a --name of its own, or end all but one"
            ])
        let table = WorkersCommand.table(
            workers, clock: WallClock(now: Timestamp(microseconds: Samples.moment.microseconds + 12_300_000)))
        #expect(
            table.lines() == [
                "WORKER  STATE     LEASES  SLOTS       SPEED     AT MOST  SINKS                    VERSION  LAST SEEN",
                "a       ready          3     16  35.1 MiB/s  40.0 MiB/s  default, archive (full)  1.0      12s ago",
                "b       draining       3     16  35.1 MiB/s           -  default, archive (full)  1.0      12s ago",
            ])
        let moving = WorkersCommand.table(
            [
                worker(
                    "a", "ready", limit: nil, bytes: .init(done: 12 << 20, total: 64 << 20, unknownLeases: 0), eta: 80),
                worker("b", "ready", limit: nil, bytes: .init(done: 1 << 20, total: 0, unknownLeases: 3)),
            ], clock: Samples.clock)
        #expect(
            moving.lines().map { $0.prefix(58) } == [
                "WORKER  STATE  LEASES  SLOTS       SPEED   TO COME     ETA",
                "a       ready       3     16  35.1 MiB/s  52.0 MiB  1m 20s",
                "b       ready       3     16  35.1 MiB/s      0 B+       -",
            ])
    }

    @Test func theTableOfTasksShowsSpeedsWhereThereMayBeSome() {
        func task(_ key: String, _ state: TaskState, speed: Int64, eta: Int64?) -> TaskDocument {
            var task = TaskDocument(key: key, state: state, urls: [], path: key, createdAt: Samples.moment)
            task.bytes = .init(done: 1 << 20, total: 5 << 20)
            task.attempts = 1
            task.bytesPerSecond = speed
            task.etaSeconds = eta
            return task
        }
        let name = "releases/2026/november/nightly-build-linux-x86_64-%-with-symbols.tar.zst"
        let keys = ["01", "02", "11"].map { name.split(separator: "%").joined(separator: $0) }
        let alike = TasksCommand.table(keys.map { task($0, .queued, speed: 0, eta: nil) }, mayMove: true)
        let lines = alike.lines(width: 80)
        #expect(lines[0] == "STATE      DONE     SIZE  TRIES  KEY", "columns in which nothing stands")
        #expect(Set(lines).count == 4 && lines.allSatisfy { TextWidth.columns($0) <= 80 }, "\(lines)")
        let tasks = [task("a", .active, speed: 1 << 20, eta: 4), task("b", .queued, speed: 0, eta: nil)]
        #expect(
            TasksCommand.table(tasks, mayMove: true).lines() == [
                "STATE      DONE     SIZE      SPEED  ETA  TRIES  KEY",
                "active  1.0 MiB  5.0 MiB  1.0 MiB/s   4s      1  a",
                "queued  1.0 MiB  5.0 MiB          -    -      1  b",
            ])
        #expect(
            TasksCommand.table(tasks, mayMove: false).lines().last == "queued  1.0 MiB  5.0 MiB      1  b")
    }
}
