import Synchronization
import Testing

@testable import MusterAPI

struct AttendanceTests {
    private static let request = APIRequest(
        method: "POST", url: "http://one/v1/groups/g/pause", headers: [], body: .bytes(Array("{}".utf8)), timeout: nil,
        manner: .change)
    private static let probe = APIRequest(
        method: "GET", url: "http://one/healthz", headers: [], body: .none, timeout: .seconds(4), manner: .probe)

    /// The attendance of a change at a server whose probe always answers.
    ///
    /// - Parameter answer: The server's answer to the change's n-th request, counted from 1.
    private static func attendance(
        _ answer: @escaping @Sendable (Int) async throws -> APIResponse
    ) -> Attendance {
        let asked = Counter()
        return Attendance(
            send: { request in
                guard request.manner == .change else { return ok }
                return try await answer(asked.next())
            }, probe: probe, patience: .seconds(4), firstPause: .milliseconds(10))
    }

    private static let ok = APIResponse(status: 200, body: Array("{}".utf8))

    /// Counts requests.
    private final class Counter: Sendable {
        private let count = Mutex(0)

        func next() -> Int {
            count.withLock {
                $0 += 1
                return $0
            }
        }
    }

    /// The connection stays open, and the probe is answered.
    @Test func changeWhoseAnswerIsLostIsAskedForOnceMore() async throws {
        let attendance = Self.attendance { number in
            if number == 1 { try await Task.sleep(for: .seconds(3_600)) }
            #expect(number <= 2)
            return Self.ok
        }
        #expect(try await attendance.answer(to: Self.request).status == 200)
    }

    /// The repetition fails because the first request still holds the lock.
    @Test func busyAnswerToARepetitionIsIgnored() async throws {
        let isRefused = AsyncStream.makeStream(of: Void.self)
        let attendance = Self.attendance { number in
            guard number == 1 else {
                isRefused.continuation.yield()
                return APIResponse(status: 503, body: [])
            }
            for await _ in isRefused.stream { break }
            return Self.ok
        }
        #expect(try await attendance.answer(to: Self.request).status == 200)
    }

    /// The probe is answered all the while, and a repetition without an answer may have been done.
    @Test func repetitionThatIsCutIsSentAgain() async throws {
        let isCut = AsyncStream.makeStream(of: Void.self)
        let attendance = Self.attendance { number in
            switch number {
            case 1:
                for await _ in isCut.stream { break }
                throw Unreachable("not over within 30 s", isTimeout: true)
            case 2:
                isCut.continuation.yield()
                throw Unreachable("reset")
            default: return Self.ok
            }
        }
        #expect(try await attendance.answer(to: Self.request).status == 200)
    }

    /// A streamed list is repeated too, once the server has stopped reading it.
    @Test func listWhoseAnswerIsLostIsSentOnceMore() async throws {
        let taken = Mutex(0)
        let attendance = Attendance(
            send: { request in
                guard case .stream(let make) = request.body else { return APIResponse(status: 200, body: []) }
                for try await part in make() { taken.withLock { $0 += part.count } }
                if taken.withLock({ $0 == 3 }) { try await Task.sleep(for: .seconds(3_600)) }
                return APIResponse(status: 200, body: [])
            }, probe: Self.probe, patience: .seconds(4), firstPause: .milliseconds(10))
        var list = Self.request
        list.body = .stream {
            AsyncThrowingStream { parts in
                for _ in 1...3 { parts.yield([0]) }
                parts.finish()
            }
        }
        #expect(try await attendance.answer(to: list).status == 200)
        #expect(taken.withLock(\.self) == 6)
    }

    @Test func failureOfTheOnlyRequestIsThrown() async {
        let attendance = Attendance(
            send: { _ in throw Unreachable("reset") }, probe: Self.probe, patience: .seconds(4))
        await #expect(throws: Unreachable.self) { try await attendance.answer(to: Self.request) }
    }

    /// Without the probe, the client would wait for a server that stops during a change until the request's timeout.
    @Test func serverThatStopsWithAChangeIsPassedOver() async throws {
        let isStopped = Mutex(false)
        let client = MusterClient(servers: ["http://one", "http://two"], token: nil) { request in
            guard request.url.hasPrefix("http://one") else {
                return APIResponse(status: 200, body: Array(#"{"added":2,"existing":1}"#.utf8))
            }
            if request.manner == .change {
                isStopped.withLock { $0 = true }
                try await Task.sleep(for: .seconds(3_600))
            }
            if isStopped.withLock(\.self) { throw Unreachable("silence", isTimeout: true) }
            return APIResponse(status: 200, body: [])
        }
        let answer = try await client.addTasks(streaming: { AsyncThrowingStream { $0.finish() } }, to: "g")
        #expect(answer == AddedDocument(added: 2, existing: 1))
    }
}
