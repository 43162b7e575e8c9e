import MusterAPI
import Testing

@testable import MusterCommandLine

@Suite("What a removal says")
struct RemovalTextTests {
    private func removal(_ files: Int64, reaching: Int64 = 1) -> RemovalDocument {
        RemovalDocument(group: "g", sink: "s", files: files, workersReaching: reaching)
    }

    @Test func whatIsNotDoneIsNotSaidToBe() {
        #expect(RemoveCommand.line("g", .keep, removal(0)) == "removed g; finished files were kept")
        #expect(
            RemoveCommand.line("g", .delete, removal(0))
                == "removed g and its finished files", "they were too many to be counted")
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

    @Test func filesThatOtherGroupsHaveAreCounted() {
        var removal = removal(0)
        removal.fate = .init(deleted: 3, kept: 2, keptBy: "x")
        #expect(
            RemoveCommand.line("g", .delete, removal)
                == """
                removed g; 3 files deleted, but for those that somebody has replaced: these stay, and the workers' logs name them; \
                2 kept: the group x has them too
                """)
        removal.fate = .init(deleted: 1, kept: 0, keptBy: nil)
        #expect(
            RemoveCommand.line("g", .delete, removal)
                == "removed g; 1 file deleted, unless somebody has replaced it: then it stays, and its worker's log says so"
        )
        removal.files = 3
        removal.fate = .init(deleted: 3, kept: 1, keptBy: "x")
        #expect(
            RemoveCommand.line("g", .delete, removal)
                == "removed g; 3 finished files are still to be deleted; 1 kept: the group x has it too; see: muster status"
        )
    }

    @Test func aRemovedGroupWithFilesHasALineOfItsOwn() {
        let lines = StatusCommand.table([], [removal(2, reaching: 0)]).lines(width: 200)
        #expect(lines.count == 2)
        #expect(lines[1].contains("removing") && lines[1].contains("2 finished files"))
    }
}
