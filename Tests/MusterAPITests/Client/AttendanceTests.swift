import Synchronization
import Testing

@testable import MusterAPI

struct AttendanceTests {
    private static let request = APIRequest(
        method: "POST", url: "http://one/v1/groups/g/pause", headers: [], body: .bytes(Array("{}".utf8)), timeout: nil,
        manner: .change)
    private static let probe = APIRequest(
        method: "GET", url: "http://one/healthz", headers: [], body: .none, timeout: .seconds(4), manner: .probe)

    /// The connection stays open, and the server is there.
    @Test func changeWhoseAnswerIsLostIsAskedForOnceMore() async throws {
        let asked = Mutex(0)
        let attendance = Attendance(
            send: { request in
                if request.manner == .change,
                    asked.withLock({
                        $0 += 1; return $0
                    }) == 1
                {
                    try await Task.sleep(for: .seconds(3_600))
                }
                return APIResponse(status: 200, body: Array("{}".utf8))
            }, probe: Self.probe, patience: .seconds(4), firstPause: .milliseconds(10))
        #expect(try await attendance.answer(to: Self.request).status == 200)
        #expect(asked.withLock(\.self) == 2)
    }

    @Test func failureOfTheOnlyRequestIsTold() async {
        let attendance = Attendance(
            send: { _ in throw Unreachable("reset") }, probe: Self.probe, patience: .seconds(4))
        await #expect(throws: Unreachable.self) { try await attendance.answer(to: Self.request) }
    }
}
