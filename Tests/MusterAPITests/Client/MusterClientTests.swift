import FoundationEssentials
import MusterAPI
import MusterCore
import Synchronization
import Testing

private let one = "http://one:7300"
private let two = "http://two:7300"
private let three = "http://three:7300"
private let emptyPage = #"{"items":[],"next":null}"#
private let added = #"{"added":2,"existing":1}"#

struct MusterClientFailoverTests {
    @Test func firstServerIsAskedAndKept() async throws {
        let script = Script([one: .answer(200, emptyPage), two: .answer(200, emptyPage)])
        let client = script.client([one, two])
        _ = try await client.workers()
        _ = try await client.workers()
        #expect(script.urls == ["\(one)/v1/workers", "\(one)/v1/workers"])
    }

    @Test(arguments: [
        Script.Reaction.unreachable, .problem(Problem(.stopping, "")), .answer(502, "<html>"), .answer(504, ""),
    ])
    func nextServerIsAskedAndKeptWhenOneIsGone(reaction: Script.Reaction) async throws {
        let script = Script([one: reaction, two: .answer(200, emptyPage)])
        let client = script.client([one, two])
        _ = try await client.workers()
        _ = try await client.workers()
        #expect(script.urls == ["\(one)/v1/workers", "\(two)/v1/workers", "\(two)/v1/workers"])
    }

    @Test func derivedClientsShareTheServerThatAnswers() async throws {
        let script = Script([one: .silent, two: .answer(200, emptyPage)])
        let client = script.client([one, two])
        for client in [client.once, client, client.passing { try await $1($0) }] { _ = try await client.workers() }
        #expect(script.urls == [one, two, two, two].map { "\($0)/v1/workers" })
    }

    @Test func clientGoesRoundToTheFirstServerAgain() async throws {
        let script = Script([one: .unreachable, two: .answer(200, emptyPage)])
        let client = script.client([one, two])
        _ = try await client.workers()
        script.set(one, .answer(200, emptyPage))
        script.set(two, .problem(Problem(.databaseUnavailable, "")))
        _ = try await client.workers()
        #expect(script.urls.suffix(2) == ["\(two)/v1/workers", "\(one)/v1/workers"])
    }

    @Test func everyServerIsAskedOnceBeforeTheClientGivesUp() async {
        let script = Script([one: .unreachable, two: .unreachable, three: .unreachable])
        await #expect(throws: Unreachable.self) { try await script.client([one, two, three]).workers() }
        #expect(script.urls.count == 3)
        #expect(Set(script.urls).count == 3)
    }

    @Test func aSilentServerHasAFewSecondsWhereAnotherOneMayAnswer() async throws {
        let script = Script([one: .silent, two: .answer(200, emptyPage)])
        _ = try await script.client([one, two]).workers()
        #expect(script.urls == ["\(one)/v1/workers", "\(two)/v1/workers"])
        #expect(try #require(script.requests.first?.timeout) <= .seconds(5))
    }

    @Test func longPollAddsItsWaitToTheTimeout() async throws {
        let script = Script([one: .silent, two: .answer(200, #"{"items":[],"next":null}"#)])
        _ = try? await script.client([one, two]).events(after: nil, limit: 1, wait: .seconds(20))
        let request = try #require(script.requests.first)
        let timeout = try #require(request.timeout)
        #expect(timeout > .seconds(20) && timeout <= .seconds(25))
    }

    @Test func silentServerGetsTheFullTimeoutWhenNoneAnswersSoon() async throws {
        let script = Script([one: .silent, two: .unreachable])
        await #expect(throws: Unreachable.self) { try await script.client([one, two]).workers() }
        #expect(script.urls == ["\(one)/v1/workers", "\(two)/v1/workers", "\(one)/v1/workers"])
        #expect(script.requests.last?.timeout == .seconds(30))
    }

    @Test func onlyServerGetsTheFullTimeout() async throws {
        let script = Script([one: .silent])
        await #expect(throws: Unreachable.self) { try await script.client([one]).workers() }
        #expect(script.requests.map(\.timeout) == [.seconds(30)])
    }

    @Test(arguments: [Script.Reaction.silent, .unreachable, .refused])
    func busyCoordinatorIsReportedRatherThanAnUnreachableOne(reaction: Script.Reaction) async {
        let busy = Problem(.busy, "a group is locked")
        for servers in [[one, two], [two, one]] {
            let script = Script([one: .problem(busy), two: reaction])
            await #expect(throws: busy) { try await script.client(servers).workers() }
        }
    }

    @Test func refusalIsNotTakenToAnotherServer() async {
        let script = Script([one: .problem(Problem(.groupNotFound, "no")), two: .answer(200, emptyPage)])
        await #expect(throws: Problem(.groupNotFound, "no")) { try await script.client([one, two]).group("g") }
        #expect(script.urls.count == 1)
    }

    @Test func cancellationIsNotTakenToAnotherServer() async {
        let script = Script([one: .cancelled, two: .answer(200, emptyPage)])
        await #expect(throws: CancellationError.self) { try await script.client([one, two]).workers() }
        #expect(script.urls.count == 1)
    }

    /// The client can't tell a hung server from a busy one, and a hung server may make the change long after the client has given up.
    @Test func changeIsSentToAServerThatAnswersTheProbe() async throws {
        let script = Script([one: .silent, two: .answer(200, added)])
        let client = script.client([one, two])
        _ = try await client.addTasks([TaskRequest(urls: ["u"])], to: "g")
        #expect(script.urls == ["\(one)/healthz", "\(two)/healthz", "\(two)/v1/groups/g/tasks"])
        #expect(try #require(script.requests.first?.timeout) <= .seconds(5))
        #expect(script.requests.map(\.manner) == [.probe, .probe, .change])
        _ = try? await client.apply(.pause, to: "g")
        #expect(script.urls.suffix(2) == ["\(two)/healthz", "\(two)/v1/groups/g/pause"])
    }

    /// A proxy in front of the coordinator may not know the path of the probe.
    @Test func probeAcceptsAnyStatus() async throws {
        let script = Script(["\(one)/healthz": .answer(404, "<html>"), "\(one)/v1": .answer(200, added)])
        _ = try await script.client([one]).addTasks([], to: "g")
        #expect(script.urls == ["\(one)/healthz", "\(one)/v1/groups/g/tasks"])
    }

    @Test(arguments: [false, true])
    func wholeBodyIsSentAgain(isStream: Bool) async throws {
        let script = Script(["\(one)/healthz": .answer(200, ""), "\(one)/v1": .unreachable, two: .answer(200, added)])
        let client = script.client([one, two])
        let made = Mutex(0)
        let answer =
            isStream
            ? try await client.addTasks(
                streaming: {
                    made.withLock { $0 += 1 }
                    return AsyncThrowingStream { $0.finish() }
                }, to: "g")
            : try await client.addTasks([TaskRequest(urls: ["u"])], to: "g")
        #expect(answer == AddedDocument(added: 2, existing: 1))
        #expect(script.urls == ["\(one)/healthz", "\(one)/v1/groups/g/tasks", "\(two)/v1/groups/g/tasks"])
        #expect(isStream || script.body == #"[{"urls":["u"]}]"#)
        for case .stream(let lines) in script.requests.map(\.body) { _ = lines() }
        #expect(made.withLock(\.self) == (isStream ? 2 : 0))
    }

    @Test func clientWithoutServersIsUnreachable() async {
        let script = Script([:])
        await #expect(throws: Unreachable.self) { try await script.client([]).workers() }
        await #expect(throws: Unreachable.self) {
            try await script.client([]).addTasks(streaming: { AsyncThrowingStream { $0.finish() } }, to: "g")
        }
        #expect(script.urls.isEmpty)
    }
}

struct MusterClientAnswerTests {
    @Test func problemIsDecodedWithItsPlace() async {
        let problem = Problem(.invalidRequest, "not a URL", pointer: "/urls/0", line: 7)
        let script = Script([one: .problem(problem)])
        await #expect(throws: problem) { try await script.client([one]).addTasks([], to: "g") }
    }

    @Test(arguments: [
        (400, "<html>"), (404, ""), (500, "{}"), (302, ""), (501, #"{"code":"unheardOf"}"#), (200, "<html>"),
    ])
    func serverThatIsNoCoordinatorIsPassedOverOrReported(status: Int, body: String) async throws {
        let script = Script([one: .answer(status, body), two: .answer(200, emptyPage)])
        _ = try await script.client([one, two]).workers()
        #expect(script.urls == ["\(one)/v1/workers", "\(two)/v1/workers"])
        await #expect {
            try await script.client([one]).workers()
        } throws: {
            "\($0)".hasPrefix("GET \(one)/v1/workers: what answers there (status \(status))")
        }
        // The other server may come back, so the failure is `Unreachable`.
        script.set(two, .unreachable)
        await #expect(throws: Unreachable.self) { try await script.client([one, two]).workers() }
    }

    @Test(arguments: ["", "<html>", "{}", #"{"items":[{}]}"#])
    func answerThatIsNotTheDocumentIsUnexpected(body: String) async {
        let script = Script([one: .answer(200, body)])
        await #expect(throws: UnexpectedAnswer.self) { try await script.client([one]).workers() }
    }

    @Test func answerWithoutADocumentNeedsNone() async throws {
        let script = Script([one: .answer(204, "")])
        try await script.client([one]).drain(worker: "w")
        #expect(script.requests.last?.method == "POST")
        #expect(script.urls == ["\(one)/healthz", "\(one)/v1/workers/w/drain"])
    }
}

struct MusterClientRequestTests {
    @Test func queryIsEncodedAndWhatIsAbsentIsLeftOut() async throws {
        let script = Script([one: .answer(200, emptyPage)])
        let client = script.client([one])
        _ = try await client.groups(state: .sealed, after: "a&b=c d/ü?#", limit: 7)
        #expect(script.urls.last == "\(one)/v1/groups?state=sealed&after=a%26b%3Dc%20d%2F%C3%BC%3F%23&limit=7")
        _ = try await client.groups()
        #expect(script.urls.last == "\(one)/v1/groups")
        _ = try await client.tasks(of: "g", state: .failed, after: "12")
        #expect(script.urls.last == "\(one)/v1/groups/g/tasks?state=failed&after=12")
    }

    @Test func keyIsOneSegmentOfThePathWhateverItHolds() async throws {
        let script = Script([one: .answer(204, "")])
        let client = script.client([one])
        try await client.removeTask("a/b c%2F..", of: "g.h", files: .delete)
        #expect(script.urls.last == "\(one)/v1/groups/g.h/tasks/a%2Fb%20c%252F..?files=delete")
        #expect(script.requests.map(\.method) == ["GET", "DELETE"])
    }

    /// Such a path resolves to that of the group, so that removing the task would remove the whole group.
    @Test(arguments: ["", ".", ".."])
    func keyThatAPathCannotHoldIsRefused(key: String) async {
        let script = Script([one: .answer(204, "")])
        let client = script.client([one])
        await #expect(throws: Problem.self) { try await client.removeTask(key, of: "g") }
        await #expect(throws: Problem.self) { try await client.task(key, of: "g") }
        #expect(script.urls.isEmpty)
    }

    @Test func slashAfterTheServerIsNotDoubled() async throws {
        let script = Script([one: .answer(200, emptyPage)])
        _ = try await script.client(["\(one)/"]).workers()
        #expect(script.urls == ["\(one)/v1/workers"])
    }

    /// The token of the local coordinator is not sent to the other servers of the list.
    @Test func eachServerIsSentItsOwnToken() async throws {
        let script = Script([two: .answer(200, emptyPage)])
        let client = MusterClient(
            servers: [one, two + "/"], tokens: .found { $0 == two + "/" ? "secret" : nil }, send: script.send)
        _ = try await client.workers()
        let shown = script.requests.map { $0.headers.first { $0.name == "Authorization" }?.value }
        #expect(shown == [nil, "Bearer secret"])
    }

    /// A local coordinator writes its token file when it starts, so there may be none yet. A token that was found once is kept.
    @Test func tokenIsLookedUpAtEachRequestUntilItIsFound() async throws {
        let script = Script([one: .answer(200, emptyPage)])
        let found = Mutex<[String?]>([nil, "secret", nil])
        let client = MusterClient(
            servers: [one], tokens: .found { _ in found.withLock { $0.removeFirst() } }, send: script.send)
        _ = try await client.passing { request, send in
            _ = try await send(request)
            return try await send(request)
        }.workers()
        _ = try await client.workers()
        let shown = script.requests.map { $0.headers.first { $0.name == "Authorization" }?.value }
        #expect(shown == [nil, "Bearer secret", "Bearer secret"])
    }

    @Test func tokenAndMediaTypesAreSent() async throws {
        let script = Script([one: .answer(200, added)])
        let client = script.client([one], token: "secret")
        _ = try await client.addTasks([], to: "g")
        #expect(script.header("Authorization") == "Bearer secret")
        #expect(script.header("Accept") == "application/json")
        #expect(script.header("Content-Type") == "application/json")
        _ = try await client.addTasks(streaming: { AsyncThrowingStream { $0.finish() } }, to: "g")
        #expect(script.header("Content-Type") == "application/x-ndjson")
        #expect(script.requests.last?.timeout == nil)
        _ = try await script.client([one]).addTasks([], to: "g")
        #expect(script.header("Authorization") == nil)
    }

    @Test func requestWithoutABodyHasNoType() async {
        let script = Script([one: .answer(200, emptyPage)])
        _ = try? await script.client([one]).origins()
        #expect(script.header("Content-Type") == nil)
        #expect(script.body == nil)
    }

    @Test func creationCarriesItsIdempotencyKeyToEveryServer() async {
        let script = Script(["\(one)/healthz": .answer(200, ""), "\(one)/v1": .unreachable, two: .unreachable])
        _ = try? await script.client([one, two]).createGroup(GroupRequest(name: "g"), idempotencyKey: "i-1")
        let shown = script.requests.map { $0.headers.first { $0.name == "Idempotency-Key" }?.value }
        #expect(shown == [nil, "i-1", "i-1"])
        #expect(script.body == #"{"name":"g"}"#)
    }

    @Test(arguments: GroupVerb.allCases)
    func verbIsTheEndOfThePath(verb: GroupVerb) async {
        let script = Script([one: .answer(200, "{}")])
        _ = try? await script.client([one]).apply(verb, to: "g", keys: ["a/b"])
        #expect(script.urls == ["\(one)/healthz", "\(one)/v1/groups/g/\(verb.rawValue)"])
        #expect(script.body == #"{"keys":["a\/b"]}"#)
        _ = try? await script.client([one]).apply(verb, to: "g")
        #expect(script.body == "{}")
    }

    @Test func changeSaysOnlyWhatChanges() async throws {
        let script = Script([one: .answer(200, "{}")])
        let patch = GroupPatch(weight: 3, limits: GroupLimitsPatch(bytesPerSecond: .clear), deadline: .set("2h"))
        _ = try? await script.client([one]).change(group: "g", patch)
        #expect(script.urls.last == "\(one)/v1/groups/g" && script.requests.last?.method == "PATCH")
        #expect(try document(GroupPatch.self, script.body ?? "") == patch)
    }

    @Test func groupIsReopenedAsAWholeOrByAnAddition() async throws {
        let script = Script([one: .answer(200, added)])
        let client = script.client([one])
        _ = try? await client.reopen(group: "g")
        #expect(script.urls.last == "\(one)/v1/groups/g/reopen" && script.body == "{}")
        _ = try await client.addTasks([], to: "g", reopen: true)
        #expect(script.urls.last == "\(one)/v1/groups/g/tasks?reopen=true")
        _ = try await client.addTasks(streaming: { AsyncThrowingStream { $0.finish() } }, to: "g", reopen: true)
        #expect(script.urls.last == "\(one)/v1/groups/g/tasks?reopen=true")
        _ = try await client.addTasks([], to: "g")
        #expect(script.urls.last == "\(one)/v1/groups/g/tasks")
    }

    @Test func explanationOfAGroupIsAskedForByItsName() async {
        let script = Script([one: .unreachable])
        _ = try? await script.client([one]).groupExplanation(of: "g")
        #expect(script.urls == ["\(one)/v1/groups/g/explanation"])
    }

    @Test func readerOfEventsWaitsLongerThanTheCoordinator() async throws {
        let script = Script([one: .answer(200, #"{"items":[],"next":9,"log":"l"}"#)])
        let events = try await script.client([one]).events(after: 5, limit: 10, group: "g", wait: .milliseconds(1_500))
        #expect(events.next == 9)
        #expect(script.urls == ["\(one)/v1/events?after=5&limit=10&group=g&wait=1500ms"])
        #expect(try #require(script.requests.last?.timeout) > .milliseconds(1_500))
    }

    @Test func syncGoesToItsSessionAndWaitsLongerThanTheCoordinator() async throws {
        let script = Script([
            one: .answer(
                200, #"{"lost":[],"refused":[],"shrink":[],"leases":[],"drain":false,"ttlMilliseconds":30000}"#)
        ])
        let request = SyncRequest(sequence: 2, settled: 1, waitMilliseconds: 20_000)
        #expect(try await script.client([one]).sync(SessionID(7), request) == SyncResponse(ttlMilliseconds: 30_000))
        #expect(script.urls == ["\(one)/v1/sessions/7/sync"])
        #expect(try #require(script.requests.last?.timeout) > .seconds(20))
        try await script.client([one]).closeSession(SessionID(7))
        #expect(script.urls.last == "\(one)/v1/sessions/7")
    }

    @Test func sessionIsOpened() async throws {
        let script = Script([one: .answer(201, #"{"id":12,"ttlMilliseconds":30000}"#)])
        let session = try await script.client([one]).openSession(
            SessionRequest(name: "w", sinks: ["default"], slots: 1, version: "1")
        )
        #expect(session == SessionDocument(id: SessionID(12), ttlMilliseconds: 30_000))
    }
}
