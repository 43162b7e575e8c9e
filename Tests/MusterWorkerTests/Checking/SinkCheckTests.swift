import Foundation
import Glibc
import MusterCore
import Testing

@testable import MusterWorker

/// What a check sees in a real directory (adr/0048): every kind of finding, made by hand.
@Suite struct SinkCheckTests {
    private static let bytes = ScratchSink.content(2_500)

    /// Runs a test in a sink where task 1 has put its file at `dir/a`.
    private static func withFile(_ body: (ScratchSink) throws -> Void) async throws {
        try await ScratchSink.with { scratch in
            try scratch.makePart(1, bytes)
            let order = try scratch.order(1, path: "dir/a", bytes)
            #expect(try await scratch.finalizer.finalize(order).isInPlace)
            try body(scratch)
        }
    }

    private static func report(
        _ scratch: ScratchSink, _ kind: CheckOrder.Kind, isDeep: Bool = false, _ describe: (inout CheckOrder) -> Void
    ) throws -> CheckReport? {
        try report(scratch, kind, isDeep: isDeep, mayTake: { _ in true }, describe)
    }

    private static func report(
        _ scratch: ScratchSink, _ kind: CheckOrder.Kind, isDeep: Bool = false, mayTake: @escaping (Int64) -> Bool,
        _ describe: (inout CheckOrder) -> Void
    ) throws -> CheckReport? {
        var order = CheckOrder(sink: "test", epoch: 7, step: 3, kind: kind, isDeep: isDeep)
        describe(&order)
        return try SinkCheck(scratch.sink, mayTake: mayTake).report(on: order)
    }

    /// What is told of the file of task 1.
    private static func seen(_ scratch: ScratchSink, isDeep: Bool = false, size: Int64 = 2_500) throws -> SeenFile? {
        let crc = isDeep ? CRC32C.extend(CRC32C.empty, bytes) : nil
        let file = CheckedFile(task: TaskID(1), version: 1, run: 1, path: "dir/a", size: size, crc: crc)
        let report = try #require(try Self.report(scratch, .files, isDeep: isDeep) { $0.files = [file] })
        #expect(report.name == CheckStep(epoch: 7, step: 3) && report.looked == 1)
        return report.files?.first
    }

    /// Changes a byte, and leaves the file with the time of its last change.
    private static func damage(_ scratch: ScratchSink) throws {
        let path = scratch.path + "/dir/a"
        var status = stat()
        try #require(stat(path, &status) == 0)
        let file = try scratch.open("dir/a", O_WRONLY)
        try file.write([bytes[1_000] ^ 1], at: 1_000)
        let times = [status.st_atim, status.st_mtim]
        try #require(utimensat(AT_FDCWD, path, times, 0) == 0)
    }

    @Test func fileAsItWasPutInPlaceIsFine() async throws {
        try await Self.withFile { scratch throws in
            #expect(try Self.seen(scratch) == nil)
            #expect(try Self.seen(scratch, isDeep: true) == nil)
        }
    }

    @Test func missingFileIsTold() async throws {
        try await Self.withFile { scratch throws in
            try FileManager.default.removeItem(atPath: scratch.path + "/dir/a")
            #expect(try Self.seen(scratch)?.kind == .fileMissing)
            try FileManager.default.removeItem(atPath: scratch.path + "/dir")
            #expect(try Self.seen(scratch, isDeep: true)?.kind == .fileMissing)
        }
    }

    @Test func truncatedFileIsChangedAndNotTheTasksOwnAnyMore() async throws {
        try await Self.withFile { scratch throws in
            try #require(truncate(scratch.path + "/dir/a", 100) == 0)
            let seen = try #require(try Self.seen(scratch))
            #expect(seen.kind == .fileChanged && seen.isOwn == false)
            #expect(seen.detail == "it has 100 bytes instead of 2500")
        }
    }

    @Test func damageThatNoProgramDidIsFoundByADeepCheckAlone() async throws {
        try await Self.withFile { scratch throws in
            try Self.damage(scratch)
            #expect(try Self.seen(scratch) == nil)
            let seen = try #require(try Self.seen(scratch, isDeep: true))
            #expect(seen.kind == .fileChanged && seen.isOwn == true && seen.detail.contains("CRC32C"))
        }
    }

    @Test func fileThatAnotherProgramHasWrittenToIsToldAndComparedByADeepCheck() async throws {
        try await Self.withFile { scratch throws in
            try Self.damage(scratch)
            try scratch.setModificationTime(2_000_000_000, of: "dir/a")
            #expect(try Self.seen(scratch)?.kind == .fileWritten)
            let seen = try #require(try Self.seen(scratch, isDeep: true))
            #expect(seen.kind == .fileChanged && seen.isOwn == false)
        }
    }

    @Test func otherThingsAtThePathAreChanges() async throws {
        try await Self.withFile { scratch throws in
            let path = scratch.path + "/dir/a"
            try FileManager.default.removeItem(atPath: path)
            try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: "/etc/passwd")
            #expect(try Self.seen(scratch, isDeep: true)?.kind == .fileChanged)
            try FileManager.default.removeItem(atPath: scratch.path + "/dir")
            try FileManager.default.createSymbolicLink(atPath: scratch.path + "/dir", withDestinationPath: "/etc")
            #expect(try Self.seen(scratch, isDeep: true)?.kind == .fileUnreadable, "links are never followed")
        }
    }

    @Test func markOfAnotherInstallationIsTold() async throws {
        try await Self.withFile { scratch throws in
            let owner = FileMark.Owner(installation: "11111111-8d0e-4a3b-9a0f-6f2f0f6f1c11", task: TaskID(1))
            let file = try scratch.open("dir/a", O_RDWR)
            let path = try DestinationPath(validating: "dir/a")
            try #require(FileMark(owner: owner, version: 1).write(to: file, path: path))
            let seen = try #require(try Self.seen(scratch, isDeep: true))
            #expect(seen.kind == .fileForeign && seen.detail.contains(owner.installation))
        }
    }

    /// A task with `--if-exists replace` was removed later, and its file kept: a repair would put the older content back.
    @Test(arguments: [2_500, 2_000]) func aFileThatAnotherTaskHasPutThereIsNoDamage(size: Int) async throws {
        try await Self.withFile { scratch throws in
            let path = try DestinationPath(validating: "dir/a")
            let file = try scratch.open("dir/a", O_RDWR)
            try file.write([Self.bytes[1_000] ^ 1], at: 1_000)
            try #require(truncate(scratch.path + "/dir/a", size) == 0)
            let owner = FileMark.Owner(installation: ScratchSink.installation, task: TaskID(2))
            try #require(FileMark(owner: owner, version: 1).write(to: file, path: path))
            #expect(try Self.seen(scratch, isDeep: true)?.kind == .fileForeign)
            // Damage that came later is told as such.
            try scratch.setModificationTime(2_000_000_000, of: "dir/a")
            #expect(try Self.seen(scratch, isDeep: true)?.kind == .fileChanged)
        }
    }

    @Test func fileWithoutAKnownChecksumIsCountedAndOneWithADigestCompared() async throws {
        try await Self.withFile { scratch throws in
            var file = CheckedFile(task: TaskID(1), version: 1, run: 1, path: "dir/a", size: 2_500)
            let unproven = try #require(try Self.report(scratch, .files, isDeep: true) { $0.files = [file] })
            #expect(unproven.files == [] && unproven.unproven == 1 && unproven.bytes == 0)
            var hasher = ContentHasher([.sha256])
            Self.bytes.withUnsafeBytes { hasher.update($0) }
            file.digests = ["sha256": hasher.finish()[0].hexadecimal, "unknown": "00"]
            let proven = try #require(try Self.report(scratch, .files, isDeep: true) { $0.files = [file] })
            #expect(proven.files == [] && proven.unproven == 0 && proven.bytes == 2_500)
            try Self.damage(scratch)
            let damaged = try #require(try Self.report(scratch, .files, isDeep: true) { $0.files = [file] })
            #expect(damaged.files?.first?.kind == .fileChanged)
        }
    }

    @Test func partsThatAreMissingOrShortAreTold() async throws {
        try await Self.withFile { scratch throws in
            try scratch.makePart(2, Self.bytes)
            // Another program's.
            try #require(mkdir(scratch.path + "/" + ScratchSink.parts + "/5.1.part", 0o755) == 0)
            let report = try Self.report(scratch, .parts) { order in
                order.parts = [
                    CheckedPart(task: TaskID(2), version: 1, bytes: 2_500),
                    CheckedPart(task: TaskID(2), version: 1, bytes: 2_501),
                    CheckedPart(task: TaskID(3), version: 1, bytes: 1, path: "x/missing"),
                    // A worker may have put the file in place and died before it said so.
                    CheckedPart(task: TaskID(1), version: 1, bytes: 1, path: "dir/a"),
                    CheckedPart(task: TaskID(4), version: 1, bytes: 1, path: "dir/a"),
                    CheckedPart(task: TaskID(5), version: 1, bytes: 1),
                ]
            }
            #expect(
                report?.parts == [
                    SeenPart(task: TaskID(2), version: 1, size: 2_500), SeenPart(task: TaskID(3), version: 1),
                    SeenPart(task: TaskID(4), version: 1), SeenPart(task: TaskID(5), version: 1),
                ])
            #expect(report?.looked == 6)
        }
    }

    @Test func namesAreListedInPagesAndSuspectsAreLookedAt() async throws {
        try await Self.withFile { scratch throws in
            for task in 2..<Int64(3 + Limits.checkNames) { try scratch.makePart(task, [1]) }
            try scratch.write([1], to: ScratchSink.parts + "/of somebody")
            for directory in [ScratchSink.home + "/12", ".muster/11111111-8d0e-4a3b-9a0f-6f2f0f6f1c11"] {
                try #require(mkdir(scratch.path + "/" + directory, 0o777) == 0)
            }
            let first = try #require(try Self.report(scratch, .names) { $0.after = "" })
            #expect(first.parts?.count == Limits.checkNames && first.sessions == [SessionID(12)])
            #expect(first.installations == ["11111111-8d0e-4a3b-9a0f-6f2f0f6f1c11"])
            let last = try #require(first.last)
            let rest = try #require(try Self.report(scratch, .names) { $0.after = last })
            #expect(rest.parts?.count == 1 && rest.last == nil && rest.sessions == nil)
            let all = Set(((first.parts ?? []) + (rest.parts ?? [])).map(\.task.rawValue))
            #expect(all == Set(2..<Int64(3 + Limits.checkNames)))

            // Other spellings of a number are not the directories of sessions, and are left alone.
            for name in ["+13", "014", "-15", "0"] {
                try #require(mkdir(scratch.path + "/" + ScratchSink.home + "/" + name, 0o777) == 0)
            }
            #expect(try Self.report(scratch, .names) { $0.after = "" }?.sessions == [SessionID(12)])

            let suspects = try Self.report(scratch, .suspects) { order in
                order.parts = [CheckedPart(task: TaskID(2), version: 1), CheckedPart(task: TaskID(2), version: 9)]
                order.sessions = [SessionID(12), SessionID(13)]
            }
            #expect(suspects?.parts == [SeenPart(task: TaskID(2), version: 1, size: 1)])
            #expect(suspects?.sessions == [SessionID(12)])
        }
    }

    @Test func moreSessionsThanAReportCanHaveAreTold() async throws {
        try await Self.withFile { scratch throws in
            func makeSession(_ number: Int) throws {
                try #require(mkdir("\(scratch.path)/\(ScratchSink.home)/\(number)", 0o777) == 0)
            }
            for number in 0..<Limits.checkNames { try makeSession(1_000 + number) }
            let all = try #require(try Self.report(scratch, .names) { $0.after = "" })
            #expect(all.sessions?.count == Limits.checkNames && all.isCut == nil)
            try makeSession(9_999)
            let some = try #require(try Self.report(scratch, .names) { $0.after = "" })
            #expect(some.sessions == all.sessions && some.isCut == true)
        }
    }

    @Test func lookThatIsStoppedOrLosesItsSinkSaysNothing() async throws {
        try await Self.withFile { scratch throws in
            let file = CheckedFile(task: TaskID(1), version: 1, run: 1, path: "dir/a", size: 2_500, crc: 1)
            #expect(
                try Self.report(scratch, .files, isDeep: true, mayTake: { $0 != 2_500 }) { $0.files = [file] } == nil)
            // Its file system is unmounted in the middle.
            let (path, away) = (scratch.path, scratch.path + ".away")
            #expect(throws: StorageError.self) {
                try Self.report(scratch, .files, mayTake: { _ in rename(path, away) == 0 }) { $0.files = [file] }
            }
            try #require(rename(away, path) == 0)
        }
    }
}
