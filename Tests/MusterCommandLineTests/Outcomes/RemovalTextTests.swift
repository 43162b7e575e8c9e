import FoundationEssentials
import MusterAPI
import Synchronization
import SystemPackage
import Testing

@testable import MusterCommandLine

@Suite("What a removal says")
struct RemovalTextTests {
    private func removal(_ files: Int64, reaching: Int64 = 1) -> RemovalDocument {
        RemovalDocument(group: "g", sink: "s", files: files, workersReaching: reaching)
    }

    @Test func removalClaimsNoDeletionThatIsNotDone() {
        #expect(RemoveCommand.line("g", .keep, removal(0)) == "removed g; finished files were kept")
        #expect(RemoveCommand.line("g", .delete, removal(0)) == "removed g; 0 files deleted")
        #expect(
            RemoveCommand.line("g", .delete, removal(1))
                == "removed g; 1 finished file is still to be deleted; see: muster status")
        #expect(
            RemoveCommand.line("g", .delete, removal(2, reaching: 0))
                == """
                removed g; 2 finished files are still to be deleted, and no live worker reaches the sink s; \
                see: muster status
                """)
        var pending = removal(0)
        pending.pending = true
        #expect(RemoveCommand.line("g", .delete, pending).contains("as soon as"))
    }

    @Test func waitingForARemovalLastsThroughAnOutage() async throws {
        let absence = Problem(.databaseUnavailable, "away")
        let answers = Mutex([
            APIResponse(status: 200, body: Array(try JSONEncoder().encode(removal(0)))),
            APIResponse(status: absence.status, body: Array(try JSONEncoder().encode(absence))),
            APIResponse(status: 200, body: Array(try JSONEncoder().encode(removal(1)))),
            APIResponse(status: 200, body: []),
        ])
        let client = MusterClient(servers: ["http://127.0.0.1:1"], token: nil) { _ in
            try #require(answers.withLock { $0.popLast() })
        }
        let null = try FileDescriptor.open("/dev/null", .readWrite)
        defer { try? null.close() }
        let console = Console(json: false, output: null, errorOutput: null)
        let done = try await RemoveCommand.remove("g", [], .delete, waits: true, client, console)
        #expect(done.removal.note == nil && answers.withLock { $0.isEmpty })
    }

    /// Another command may remove the whole group at the same time.
    @Test func tasksThatAnotherCommandHasRemovedAreNotCountedAsRemoved() {
        #expect(RemoveCommand.what(2, of: "g", removed: 2) == "2 tasks of g")
        #expect(RemoveCommand.what(1, of: "g", removed: nil) == "1 task of g")
        #expect(
            RemoveCommand.what(2, of: "g", removed: 1)
                == "1 of 2 tasks of g, because another command has removed the others")
        #expect(
            RemoveCommand.line(RemoveCommand.what(2, of: "g", removed: 0), .keep, removal(0))
                == """
                removed 0 of 2 tasks of g, because another command has removed the group or them; finished files were kept
                """)
    }

    @Test func reasonWhyFilesCanNotBeDeletedIsTold() {
        var removal = removal(2)
        removal.failure = .init(files: 1, detail: "deleting a: Operation not permitted")
        #expect(
            RemoveCommand.line("g", .delete, removal)
                == """
                removed g; 2 finished files are still to be deleted, 1 of which can't be: deleting a: Operation not permitted; \
                that is tried again every 10 s; see: muster status
                """)
        removal.failure?.files = 2
        #expect(removal.note?.hasPrefix("2 finished files are still to be deleted: deleting a") == true)
        // Without a live worker, the note says that instead.
        removal.workersReaching = 0
        #expect(removal.note?.hasSuffix("no live worker reaches the sink s") == true)
    }

    @Test func aGroupThatIsBeingRemovedIsFoundByItsName() {
        let problem = Problem(.groupNotFound, "there is no group \"g\"")
        #expect(
            CommandSuggestion.completed(problem, among: ["g1"], removal: removal(1)).detail
                == """
                there is no group "g" any more: it was removed, and 1 finished file is still to be deleted; \
                to wait for that: muster remove g --wait
                """)
        #expect(
            CommandSuggestion.completed(problem, among: ["g1"], removal: removal(0)).detail.contains("did you mean g1?")
        )
    }

    @Test func filesThatOtherGroupsHaveAreCounted() {
        var removal = removal(0)
        removal.fate = .init(toDelete: 3, kept: 2, keptBy: "x")
        removal.outcome = .init(deleted: 3, changed: 0, missing: 0)
        #expect(
            RemoveCommand.line("g", .delete, removal)
                == "removed g; 3 files deleted; 2 kept: the group x has them too")
        removal.files = 3
        removal.fate = .init(toDelete: 3, kept: 1, keptBy: "x")
        #expect(
            RemoveCommand.line("g", .delete, removal)
                == "removed g; 3 finished files are still to be deleted; 1 kept: the group x has it too; see: muster status"
        )
    }

    @Test func removalTellsWhatBecameOfFiles() {
        var removal = removal(0)
        removal.outcome = .init(deleted: 1, changed: 1, missing: 0)
        #expect(
            RemoveCommand.line("g", .delete, removal)
                == "removed g; 1 file deleted; 1 kept, since what is there is not this installation's, or was changed: the worker's log names it"
        )
        removal.outcome = .init(deleted: 0, changed: 2, missing: 3)
        #expect(
            RemoveCommand.line("g", .delete, removal)
                == """
                removed g; 0 files deleted; 2 kept, since what is there is not this installation's, or was changed: \
                the workers' logs name them; \
                3 gone already
                """)
    }

    @Test func aRemovedGroupWithFilesHasALineOfItsOwn() {
        let lines = StatusCommand.table([], [removal(2, reaching: 0)]).lines(width: 200)
        #expect(lines.count == 2)
        #expect(lines[1].contains("removing") && lines[1].contains("2 finished files"))
    }
}
