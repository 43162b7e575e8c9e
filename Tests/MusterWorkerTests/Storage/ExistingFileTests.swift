import Crypto
import Glibc
import MusterCore
import Synchronization
import Testing

@testable import MusterWorker

@Suite struct ExistingFileTests {
    let bytes = ScratchSink.content(10_000)
    var sha256: ContentDigest { ContentDigest(algorithm: .sha256, bytes: SHA256.hash(data: bytes)) }

    private func check(
        _ scratch: ScratchSink,
        _ path: String = "d/f",
        size: Int64? = nil,
        digests: [ContentDigest] = [],
        recorded: Set<DigestAlgorithm> = [],
        lastModified: Int64? = nil,
        watch: FinalizeWatch = FinalizeWatch()
    ) async throws -> ExistingFile.Verdict {
        try await ExistingFile(sink: scratch.sink, pool: scratch.pool).check(
            path: DestinationPath(validating: path),
            size: size,
            digests: digests,
            recorded: recorded,
            lastModified: lastModified,
            watch: watch
        )
    }

    private func with(_ body: (ScratchSink) async throws -> Void) async throws {
        try await ScratchSink.with { scratch in
            #expect(mkdir(scratch.path + "/d", 0o755) == 0)
            try scratch.write(bytes, to: "d/f")
            try await body(scratch)
        }
    }

    private func equal(
        _ verdict: ExistingFile.Verdict,
        _ expected: ExistingFile.Verdict,
        _ location: SourceLocation = #_sourceLocation
    ) {
        #expect(verdict == expected, sourceLocation: location)
    }

    private func differs(
        _ verdict: ExistingFile.Verdict, _ words: String, _ location: SourceLocation = #_sourceLocation
    ) {
        guard case .differs(let reason) = verdict, reason.contains(words) else {
            Issue.record("\(verdict) does not say \(words)", sourceLocation: location)
            return
        }
    }

    @Test func missingPathIsAbsentAndNothingIsMade() async throws {
        try await with { scratch in
            for path in ["d/g", "g", "e/f/g"] {
                equal(try await check(scratch, path, size: 1, lastModified: 1), .absent)
            }
            #expect(try scratch.fileNames() == ["d"])
        }
    }

    @Test func aRightDigestIsEnough() async throws {
        try await with { scratch in
            let found = ExistingFile.Verdict.matches(size: 10_000, digests: [sha256])
            equal(try await check(scratch, digests: [sha256]), found)
            equal(try await check(scratch, size: 10_000, digests: [sha256], lastModified: 1), found)
            #expect(try scratch.read("d/f") == bytes)
        }
    }

    @Test func everyDigestMustHold() async throws {
        try await with { scratch in
            let wrong = ContentDigest(algorithm: .md5, bytes: Insecure.MD5.hash(data: [1]))
            differs(try await check(scratch, digests: [sha256, wrong]), "md5")
            // Two of one algorithm that contradict each other can't both hold.
            let other = ContentDigest(algorithm: .sha256, bytes: SHA256.hash(data: [1]))
            differs(try await check(scratch, digests: [sha256, other]), "sha256")
        }
    }

    @Test func furtherDigestsAreComputedOnTheWay() async throws {
        try await with { scratch in
            let verdict = try await check(scratch, digests: [sha256], recorded: [.crc32c])
            guard case .matches(_, let digests) = verdict else {
                Issue.record("\(verdict)")
                return
            }
            #expect(Set(digests.map(\.algorithm)) == [.sha256, .crc32c])
        }
    }

    @Test func aKnownSizeSparesTheReading() async throws {
        try await with { scratch in
            let read = Atomic<Int64>(0)
            let watch = FinalizeWatch(verified: { read.store($0, ordering: .relaxed) })
            differs(try await check(scratch, size: 9_999, digests: [sha256], watch: watch), "10000 bytes")
            #expect(read.load(ordering: .relaxed) == 0)
            _ = try await check(scratch, size: 10_000, digests: [sha256], watch: watch)
            #expect(read.load(ordering: .relaxed) == 10_000)
        }
    }

    @Test func withoutADigestSizeAndTimeMustBothBeKnownAndEqual() async throws {
        try await with { scratch in
            try scratch.setModificationTime(1_700_000_000, of: "d/f")
            let found = ExistingFile.Verdict.matches(size: 10_000, digests: [])
            equal(try await check(scratch, size: 10_000, lastModified: 1_700_000_000), found)
            differs(try await check(scratch, size: 10_000, lastModified: 1_700_000_001), "modified")
            differs(try await check(scratch, size: 10_000, lastModified: 1_699_999_999), "modified")
            differs(try await check(scratch, size: 10_001, lastModified: 1_700_000_000), "bytes")
            differs(try await check(scratch, size: 10_000), "neither")
            differs(try await check(scratch, lastModified: 1_700_000_000), "neither")
            differs(try await check(scratch), "neither")
        }
    }

    @Test func fractionsOfASecondDoNotCount() async throws {
        try await with { scratch in
            let times = [timespec(tv_sec: 5, tv_nsec: 0), timespec(tv_sec: 1_700_000_000, tv_nsec: 999_999_999)]
            #expect(utimensat(AT_FDCWD, scratch.path + "/d/f", times, 0) == 0)
            let verdict = try await check(scratch, size: 10_000, lastModified: 1_700_000_000)
            #expect(verdict == .matches(size: 10_000, digests: []))
        }
    }

    @Test func onlyRegularFilesMatch() async throws {
        try await with { scratch in
            #expect(symlink("f", scratch.path + "/d/link") == 0)
            #expect(mkfifo(scratch.path + "/d/pipe", 0o644) == 0)
            for (path, what) in [("d", "a directory"), ("d/link", "a symbolic link"), ("d/pipe", "no regular file")] {
                differs(try await check(scratch, path, digests: [sha256]), what)
            }
        }
    }

    @Test func aLinkOnTheWayIsNotFollowed() async throws {
        try await with { scratch in
            #expect(symlink("d", scratch.path + "/link") == 0)
            let error = await #expect(throws: StorageError.self) {
                try await check(scratch, "link/f", digests: [sha256])
            }
            guard case .symbolicLink? = error else {
                Issue.record("\(String(describing: error))")
                return
            }
        }
    }

    @Test func aFileThatChangesUnderTheReadingDiffers() async throws {
        try await with { scratch in
            let path = scratch.path + "/d/f"
            for isCut in [false, true] {
                try scratch.write(bytes, to: "d/f")
                try scratch.setModificationTime(1_000, of: "d/f")
                let watch = FinalizeWatch(verified: { _ in
                    // The bytes that were read so far are no longer those of the file.
                    if isCut {
                        truncate(path, 5_000)
                    } else {
                        #expect(throws: Never.self) { try scratch.setModificationTime(2_000, of: "d/f") }
                    }
                })
                differs(try await check(scratch, digests: [sha256], watch: watch), "being changed")
            }
            // The file ends before its stated size.
            try scratch.write(bytes, to: "d/f")
            let watch = FinalizeWatch(mayContinue: {
                truncate(path, 5_000)
                return true
            })
            differs(try await check(scratch, digests: [sha256], watch: watch), "")
        }
    }

    @Test func itStopsWhenItIsTold() async throws {
        try await with { scratch in
            for allowed in 0..<2 {
                let asked = Atomic<Int>(0)
                let watch = FinalizeWatch(mayContinue: { asked.add(1, ordering: .relaxed).oldValue < allowed })
                equal(try await check(scratch, digests: [sha256], watch: watch), .stopped)
            }
        }
    }

    @Test func aSinkThatIsGoneIsNotTakenForAnEmptyOne() async throws {
        try await with { scratch in
            #expect(rename(scratch.path, scratch.path + ".away") == 0)
            let error = await #expect(throws: StorageError.self) { try await check(scratch, digests: [sha256]) }
            #expect(error?.parksSink == true)
            #expect(rename(scratch.path + ".away", scratch.path) == 0)
        }
    }
}
