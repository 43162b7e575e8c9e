import MusterCore
import MusterEmbeddedPostgres
import Synchronization
import SystemPackage
import Testing

@testable import MusterCommandLine

@Suite("Room for a private database")
struct DatabaseRoomTests {
    private static let lack = EmbeddedPostgresError.diskFull(
        directory: "/srv/pg", neededBytes: 32 << 20, freeBytes: 3 << 20)
    private static let said =
        "the disk is full: the private database in /srv/pg needs 32 MiB, and 3 MiB are free; 29 MiB are missing; waiting for room: make some, "
        + "and it goes on by itself"

    /// The messages about a series of findings: whether there is room, and whether the server runs.
    private func told(tellsOfRunning: Bool, _ findings: [(Bool, isRunning: Bool)]) -> [String] {
        let told = Lines()
        let room = DatabaseRoom(tellsOfRunning: tellsOfRunning, onFull: .wait, remark: told.add)
        for (hasRoom, isRunning) in findings {
            room.found(hasRoom ? nil : Self.lack, isRunning: isRunning)
            #expect((room.lack == nil) == hasRoom)
        }
        return told.all
    }

    private final class Lines: Sendable {
        private let lines = Mutex<[String]>([])
        var all: [String] { lines.withLock { $0 } }
        @Sendable func add(_ line: String) { lines.withLock { $0.append(line) } }
    }

    @Test func aLackIsToldOnceAndSoIsItsEnd() {
        let findings = [
            (true, isRunning: true), (false, isRunning: true), (false, isRunning: true), (false, isRunning: false),
            (true, isRunning: true), (true, isRunning: true), (false, isRunning: false),
        ]
        #expect(told(tellsOfRunning: true, findings) == [Self.said, "there is room again; going on", Self.said])
    }

    /// A command that ends on a full disk doesn't promise to go on.
    @Test(arguments: [(OnFull.fail, false), (.wait, true)])
    func onlyACommandThatWaitsForRoomSaysThatItGoesOn(onFull: OnFull, waits: Bool) throws {
        let room = DatabaseRoom(tellsOfRunning: false, onFull: onFull) { _ in }
        #expect(room.trouble == nil)
        room.found(Self.lack, isRunning: true)
        #expect(try #require(room.trouble).contains("goes on by itself") == waits)
    }

    @Test func aRunningServersLackIsLeftToTheWatcherOfTheSameDisk() {
        #expect(told(tellsOfRunning: false, [(false, isRunning: true), (true, isRunning: true)]).isEmpty)
        #expect(told(tellsOfRunning: false, [(false, isRunning: true), (false, isRunning: false)]) == [Self.said])
    }
}
