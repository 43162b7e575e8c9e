import FoundationEssentials
import MusterAPI
import MusterCore
import Synchronization
import SystemPackage
import Testing

@testable import MusterCommandLine

@Suite("Deliveries")
struct DeliveriesTests {
    private static func delivery(_ id: Int64, failure: String? = nil) -> DeliveryDocument {
        var delivery = DeliveryDocument(
            id: id, subscription: "ci", state: .dead, event: "grp-7-1-failed", type: "dev.muster.group.failed.v1",
            subject: "groups/g", position: 42)
        delivery.attempts = 10
        delivery.triedAt = Samples.moment
        delivery.failure = failure
        return delivery
    }

    /// Runs `body` with a console. Returns what is printed, also where `body` throws.
    private func printed(
        json: Bool = false,
        _ body: (Console, _ soFar: () throws -> [String]) async throws -> Void
    ) async throws -> [String] {
        let path = FileManager.default.temporaryDirectory.path + "/muster-deliveries-\(RandomToken.make())"
        let file = try FileDescriptor.open(
            FilePath(path), .writeOnly, options: [.create, .exclusiveCreate], permissions: .ownerReadWrite)
        defer {
            try? file.close()
            try? FileManager.default.removeItem(atPath: path)
        }
        func lines() throws -> [String] {
            String(decoding: try Data(contentsOf: URL(filePath: path)), as: UTF8.self).split(separator: "\n").map(
                String.init)
        }
        try await body(Console(json: json, output: file, errorOutput: file), lines)
        return try lines()
    }

    @Test func listingIsPrintedAPageAtATimeUnderOneHeading() async throws {
        let lines = try await printed { console, soFar in
            try await DeliveriesListCommand.show(state: nil, on: console) { after in
                guard after == nil else {
                    let lines = try soFar()
                    #expect(lines.count == 2, "the first page is out before the second is asked for")
                    return Page(items: [Self.delivery(2, failure: "status 500")], next: nil)
                }
                return Page(items: [Self.delivery(1)], next: "1")
            }
        }
        #expect(
            lines == [
                "ID  STATE  TRIES  SUBSCRIPTION  EVENT  TYPE          SUBJECT   NEXT TRY  FAILURE",
                " 1  dead      10  ci               42  group.failed  groups/g  -",
                " 2  dead      10  ci               42  group.failed  groups/g  -         status 500",
            ])
    }

    @Test func listingOfOnePageHasNoEmptyColumns() async throws {
        let lines = try await printed { console, _ in
            try await DeliveriesListCommand.show(state: .dead, on: console) { _ in
                Page(items: [Self.delivery(1)], next: nil)
            }
        }
        #expect(lines.first?.hasSuffix("SUBJECT") == true)
        let none = try await printed { console, _ in
            try await DeliveriesListCommand.show(state: .dead, on: console) { _ in Page(items: [], next: nil) }
        }
        #expect(none == ["there are no dead deliveries"])
    }

    @Test func listingAsJSONIsOneDocument() async throws {
        let lines = try await printed(json: true) { console, _ in
            try await DeliveriesListCommand.show(state: nil, on: console) { after in
                Page(items: [Self.delivery(after == nil ? 1 : 2)], next: after == nil ? "1" : nil)
            }
        }
        #expect(lines.count == 1 && lines[0].contains("\"id\":1,") && lines[0].contains("\"id\":2,"))
    }

    /// A client of a server with the deliveries `there`, which reports the number of each replayed one. Replaying `vanishing` fails: it is not found.
    private func client(
        _ there: [Int64],
        vanishing: Int64? = nil,
        _ replayed: @escaping @Sendable (Int64) -> Void
    ) -> MusterClient {
        MusterClient(servers: ["http://script"], token: nil) { request in
            let path = request.url.dropFirst("http://script/v1/deliveries".count)
            if request.url.hasSuffix("/healthz") { return APIResponse(status: 200, body: []) }
            let number = Int64(path.split { !$0.isNumber }.first ?? "") ?? 0
            if request.method == "GET" {
                let items = there.filter { $0 > number }.prefix(1).map { Self.delivery($0) }
                return APIResponse(
                    status: 200, body: Array(try JSONEncoder().encode(Page(items: Array(items), next: nil))))
            }
            guard there.contains(number), number != vanishing else {
                let problem = Problem(.deliveryNotFound, "there is no delivery \(number)")
                return APIResponse(status: problem.status, body: Array(try JSONEncoder().encode(problem)))
            }
            replayed(number)
            return APIResponse(status: 202, body: Array(try JSONEncoder().encode(Self.delivery(number))))
        }
    }

    @Test(arguments: [[17, 18, 20], [17, 19, 20], [0, 17]] as [[Int64]])
    func deliveriesAreReplayedAllOrNone(ids: [Int64]) async throws {
        let replayed = Mutex<[Int64]>([])
        let client = client([17, 18, 20]) { id in replayed.withLock { $0.append(id) } }
        let isWhole = ids == [17, 18, 20]
        let lines = try await printed { console, _ in
            do {
                try await DeliveriesReplayCommand.replay(ids, by: client, on: console)
                #expect(isWhole)
            } catch let problem as Problem where problem.code == .deliveryNotFound {
                #expect(!isWhole)
            }
        }
        #expect(replayed.withLock(\.self) == (isWhole ? ids : []))
        #expect(lines.count == (isWhole ? 4 : 0))
    }

    @Test func replaysAreToldUpToADeliveryThatVanishesInBetween() async throws {
        let replayed = Mutex<[Int64]>([])
        let client = client([17, 18], vanishing: 18) { id in replayed.withLock { $0.append(id) } }
        let lines = try await printed { console, _ in
            await #expect(throws: Problem.self) {
                try await DeliveriesReplayCommand.replay([17, 18], by: client, on: console)
            }
        }
        #expect(replayed.withLock(\.self) == [17])
        #expect(lines.count == 2 && lines[1].hasPrefix("17  dead"))
    }
}
