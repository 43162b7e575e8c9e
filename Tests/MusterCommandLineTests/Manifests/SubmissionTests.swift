import FoundationEssentials
import MusterAPI
import MusterCore
import Synchronization
import Testing

@testable import MusterCommandLine

/// How tasks get into a group.
@Suite("Submission")
struct SubmissionTests {
    /// The answer may have been lost after the tasks were added (F6): removing the group would remove acknowledged tasks.
    @Test(arguments: [true, false])
    func newGroupIsRemovedOnlyWhereItsTasksAreRefused(isRefused: Bool) async throws {
        let group = Array(try JSONEncoder().encode(Samples.group(state: .open)))
        let refusal = Problem(.invalidRequest, "no")
        let document = Array(try JSONEncoder().encode(refusal))
        let removed = Mutex(false)
        let client = MusterClient(servers: ["http://script"], token: nil) { request in
            if request.method == "DELETE" { removed.withLock { $0 = true } }
            guard request.url.hasSuffix("/tasks") else { return APIResponse(status: 200, body: group) }
            guard isRefused else { throw Unreachable("reset") }
            return APIResponse(status: refusal.status, body: document)
        }
        let tasks = try TaskList(manifest: nil, urls: ["http://127.0.0.1:9/x"])
        var survey = tasks.survey
        survey.count = 1_000
        let submission = Submission(
            client: client, group: "g", sink: nil, wishes: GroupPatch(), transfers: TransferSettings(), seals: true,
            reopens: false, tasks: tasks)
        await #expect(throws: (any Error).self) { try await submission.submit(survey) }
        #expect(removed.withLock { $0 } == isRefused)
    }
}
