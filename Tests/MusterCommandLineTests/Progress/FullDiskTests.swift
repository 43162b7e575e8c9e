import MusterAPI
import MusterCore
import Testing

@testable import MusterCommandLine

@Suite("A full disk")
struct FullDiskTests {
    @Test func aFullDiskIsNamedWithWhatIsMissing() {
        let gibibyte = Int64(1) << 30
        func text(
            done: Int64, total: Int64, unknown: Int64 = 0, free: Int64?, owed: Int64 = 0, isQuota: Bool = false
        ) -> String {
            var group = Samples.group()
            group.bytes = .init(done: done, total: total, unknownTasks: unknown)
            return DiskWatch.text(group, free: free, owed: owed, isQuota: isQuota, directory: "/srv")
        }
        #expect(
            text(done: gibibyte, total: 3 * gibibyte, free: gibibyte / 2)
                == "/srv is full: 2.0 GiB are still to come, 512.0 MiB are free; up to 1.5 GiB are missing")
        #expect(
            text(done: 0, total: gibibyte, unknown: 2, free: 2 * gibibyte)
                == "/srv has no room for a file: at least 1.0 GiB are still to come, 2.0 GiB are free")
        // The free space is kept for the database, and there is no room for files.
        #expect(
            text(done: 0, total: gibibyte, unknown: 2, free: 64 << 20, owed: 64 << 20)
                == "/srv is full: at least 1.0 GiB are still to come, 0 B are free, 64.0 MiB are kept for its database; up to 1.0 GiB are missing, and what 2 files need whose sizes are not known yet"
        )
        #expect(
            text(done: gibibyte, total: 2 * gibibyte, free: 2 * gibibyte)
                == "/srv takes no more: 1.0 GiB are still to come, 2.0 GiB are free")
        #expect(
            text(done: gibibyte, total: 2 * gibibyte, free: 2 * gibibyte, isQuota: true)
                == "the quota is used up in /srv: 1.0 GiB are still to come")
        #expect(text(done: 0, total: 0, unknown: 1, free: 0) == "/srv is full: 0 B are free")
        #expect(text(done: 0, total: 0, unknown: 1, free: nil) == "/srv is full")
        #expect(text(done: 0, total: 0, unknown: 1, free: gibibyte) == "/srv has no room for a file: 1.0 GiB are free")
    }

    /// The refusal of a file names the space that was free at an earlier moment.
    @Test func freeSpaceIsToldOnce() {
        let text = "/srv has no room for a file: 23.1 MiB are free, 32.0 MiB are kept for its database"
        let needs = "the file needs 76.3 MiB more"
        #expect(DiskWatch.line("a", "\(needs), 39.1 MiB are free", below: text) == "  a: \(needs)")
        #expect(
            DiskWatch.line("a", "\(needs), 39 are free, the whole file system has 64.0 MiB", below: text)
                == "  a: \(needs), the whole file system has 64.0 MiB")
        #expect(
            DiskWatch.line("a", "\(needs), 39.1 MiB are free", below: "/srv is full")
                == "  a: \(needs), 39.1 MiB are free")
    }

    @Test func aGroupLacksRoomWhenNothingElseIsLeftOfIt() {
        var group = Samples.group(total: 3, succeeded: 1)
        #expect(!DiskWatch.lacksRoom(group))
        group.trouble = [.init(kind: .storageFull, tasks: 1)]
        #expect(!DiskWatch.lacksRoom(group))
        group.trouble = [.init(kind: .storageFull, tasks: 2)]
        #expect(DiskWatch.lacksRoom(group))
        group.trouble = [.init(kind: .network, tasks: 2)]
        #expect(!DiskWatch.lacksRoom(group))
    }

    @Test func refusalsOfAnEarlierRunDoNotMeanThatTheDiskIsFullNow() {
        let first = Timestamp(microseconds: 1)
        let second = Timestamp(microseconds: 2)
        #expect(DiskWatch.areNewer([first], than: nil))
        #expect(DiskWatch.areNewer([second], than: first))
        #expect(!DiskWatch.areNewer([first], than: first))
        // One of the two files has not been tried again.
        #expect(!DiskWatch.areNewer([second, first], than: first))
    }

    /// With an exhausted quota the disk still has room, so a look at the disk tells no more.
    @Test func aQuotaIsNoFullDisk() {
        let detail = "the sink is full: writing 9 bytes at 0 of a: Disk quota exceeded"
        let failure = TaskFailure(kind: .storageFull, detail: detail, at: Samples.moment)
        #expect(FailureText.text(failure, isDecided: true) == "quota used up: \(detail)")
        #expect(FailureAdvice.advice(failure)?.text.hasPrefix("the quota is used up") == true)
        let full = TaskFailure(kind: .storageFull, detail: "No space left on device", at: Samples.moment)
        #expect(FailureText.text(full, isDecided: true).hasPrefix("disk full"))
    }

    /// Looks: `.` no obstacle; `r` the directory refuses writes, which counts after three looks; `f` no room, which counts after two; `*`
    /// and `F` the same as `.` and `f`, with bytes that came. News: a capital letter when an obstacle lasts, a small one when it is over.
    @Test(arguments: [
        ("rr.rrrr.", "-----R-r"), ("fff", "-F-"), ("ff.f*", "-F--f"), ("fFff", "--F-"), ("ffrrr.", "-F--Rr"),
    ])
    func obstacleIsToldOnceIfItLastsAndWhenItIsOver(looks: String, news: String) {
        var blockage = Blockage()
        let told = looks.map { look in
            let found: Blockage.Kind? = [".", "*"].contains(look) ? nil : look == "r" ? .refused : .full
            let hasCome = ["*", "F"].contains(look)
            return switch blockage.look(found, looks: found == .refused ? 3 : 2, hasCome: hasCome, hasRoom: true) {
            case nil: "-"
            case .lasts(.refused): "R"
            case .lasts(.full): "F"
            case .isOver(.refused): "r"
            case .isOver(.full): "f"
            }
        }
        #expect(told.joined() == news)
    }
    /// Files whose room was reserved still arrive on a full disk.
    @Test func bytesThatHadTheirRoomAreNoSignOfNewRoom() {
        var blockage = Blockage()
        for _ in 0..<2 { _ = blockage.look(.full, looks: 2, hasCome: false, hasRoom: false) }
        #expect(blockage.look(nil, looks: 2, hasCome: true, hasRoom: false) == nil)
        #expect(blockage.look(nil, looks: 2, hasCome: true, hasRoom: true) == .isOver(.full))
    }
}
