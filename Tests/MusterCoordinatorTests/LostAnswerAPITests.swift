import MusterAPI
import MusterCore
import Synchronization
import SystemPackage
import Testing

@testable import MusterCommandLine

/// Requests that were carried out but whose first answer is lost: what a command with `waits: false` gets from its retries (F6, I10).
@Suite("Answers that are lost")
struct LostAnswerAPITests {
    /// Talks to a coordinator through a client that loses the first answer to each change.
    private func with(_ body: @escaping @Sendable (MusterClient) async throws -> Void) async throws {
        try await RunningCoordinator.with { coordinator in
            let lost = Mutex<Set<String>>([])
            let client = MusterClient(servers: [coordinator.url], token: nil) { request in
                let answer = try await coordinator.send(request)
                let isNew = lost.withLock { $0.insert("\(request.method) \(request.url)").inserted }
                guard request.manner == .change, isNew else { return answer }
                throw Unreachable("the answer is lost: \(answer.status)")
            }
            let null = try FileDescriptor.open("/dev/null", .readWrite)
            defer { try? null.close() }
            let console = Console(json: false, output: null, errorOutput: null)
            try await body(Patience(console: console, waits: false).asking(by: client))
        }
    }

    private func task(_ name: String) -> TaskRequest { TaskRequest(urls: ["http://127.0.0.1:9/\(name)"]) }

    @Test func groupIsMadeChangedAndRemovedOnce() async throws {
        try await with { client in
            let made = try await client.createGroup(
                GroupRequest(name: "g", sealed: true, tasks: [task("a"), task("b")]), idempotencyKey: "i-1")
            #expect(made.tasks.total == 2)
            #expect(
                try await client.change(group: "g", GroupPatch(priority: 3)).priority == 3)
            #expect(try await client.reopen(group: "g").state == .open)
            for verb in GroupVerb.allCases {
                #expect(try await client.apply(verb, to: "g").changedTasks == nil, "\(verb)")
            }
            let left = try await client.removeTasks(["a"], of: "g")
            #expect(left.name == "g" && left.changedTasks == nil)
            try await client.removeTask("b", of: "g", files: .delete)
            #expect(try await client.removeGroup("g").note == nil)
            await #expect(throws: Problem.self) { try await client.group("g") }
        }
    }

    @Test func additionIsToldAsTheFirstRequestDidIt() async throws {
        try await with { client in
            _ = try await client.createGroup(GroupRequest(name: "g", tasks: [task("a")]), idempotencyKey: "i-1")
            let added = AddedDocument(added: 1, existing: 1)
            #expect(try await client.addTasks([task("a"), task("b")], to: "g", idempotencyKey: "i-2") == added)
            #expect(
                try await client.addTasks([task("b"), task("c")], to: "g", reopen: true, idempotencyKey: "i-3") == added
            )
            #expect(
                try await client.addTasks([task("c")], to: "g", idempotencyKey: "i-4")
                    == AddedDocument(added: 0, existing: 1))
            #expect(try await client.group("g").tasks.total == 3)
        }
    }

    @Test func subscriptionHasTheSecretThatIsShown() async throws {
        try await with { client in
            let request = SubscriptionRequest(name: "s", url: "http://127.0.0.1:9/x")
            #expect(try await client.createSubscription(request, idempotencyKey: "i-1").secret != nil)
            let secret = Secret("whsec_" + String(repeating: "A", count: 32))
            let rotated = try await client.changeSubscription("s", SubscriptionPatch(secret: secret))
            #expect(rotated.previousSecretUntil != nil)
            try await client.removeSubscription("s")
            await #expect(throws: Problem.self) { try await client.subscription("s") }
        }
    }
}
