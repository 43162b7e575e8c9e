import MusterTestSupport
import SystemPackage
import Testing

@Suite struct FileTests {
    @Test func temporaryDirectoryGoesWithItsObject() throws {
        var directory: TemporaryDirectory? = try TemporaryDirectory()
        let path = try #require(directory?.path)
        let file = path.appending("file")
        let descriptor = try FileDescriptor.open(file, .writeOnly, options: .create, permissions: .ownerReadWrite)
        try descriptor.closeAfter { _ = try descriptor.writeAll("abc".utf8) }
        #expect(
            try FileDigest.sha256(file) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
            "the digest of “abc” in FIPS 180-2"
        )
        directory = nil
        #expect(throws: Errno.noSuchFileOrDirectory) { try path.stat() }
    }

    @Test func sameSeedGivesTheSameNumbers() {
        var first = SeededGenerator(seed: 42)
        var second = SeededGenerator(seed: 42)
        #expect((0..<10).map { _ in first.next() } == (0..<10).map { _ in second.next() })
        var other = SeededGenerator(seed: 43)
        #expect(first.next() != other.next())
    }

    @Test func freePortCanBeListenedOn() async throws {
        let port = try await FreePort.find()
        #expect((1024...65535).contains(port))
    }
}

@Suite struct ObservedTests {
    @Test func everyWaiterIsWokenByTheChange() async throws {
        let number = Observed(0)
        try await withThrowingTaskGroup(of: Int.self) { group in
            for limit in 1...50 {
                group.addTask { try await number.wait(for: "\(limit)") { $0 >= limit } }
            }
            for _ in 1...50 { number.update { $0 += 1 } }
            var count = 0
            for try await value in group where value > 0 { count += 1 }
            #expect(count == 50)
        }
    }

    @Test func cancelledWaitEnds() async throws {
        let number = Observed(0)
        let waiting = Task { try await number.wait(for: "never", limit: nil) { $0 > 0 } }
        waiting.cancel()
        await #expect(throws: CancellationError.self) { try await waiting.value }
    }

    @Test func waitThatTimesOutNamesWhatItWaitedFor() async throws {
        let number = Observed(5)
        let error = try await #require(throws: TimedOut.self) {
            try await number.wait(for: "six", limit: .milliseconds(20)) { $0 == 6 }
        }
        #expect(error.what == "six")
        #expect(error.details == "5")
    }
}
