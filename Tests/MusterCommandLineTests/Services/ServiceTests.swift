import FoundationEssentials
import MusterAPI
import MusterSystem
import Testing

@testable import MusterCommandLine

@Suite("Parts of long-running commands")
struct ServiceTests {
    @Test func aValueReachesAllWaitersAndLaterReaders() async throws {
        let eventual = Eventual<Int>()
        #expect(eventual.current == nil)
        try await withThrowingTaskGroup(of: Int.self) { tasks in
            for _ in 0..<10 { tasks.addTask { try await eventual.value() } }
            eventual.fulfil(7)
            eventual.fulfil(8)
            for try await value in tasks { #expect(value == 7) }
        }
        #expect(try await eventual.value() == 7)
        #expect(eventual.current == 7)
    }

    @Test func waitingForAValueEndsWithItsTask() async {
        let eventual = Eventual<Int>()
        await withTaskGroup(of: Bool.self) { tasks in
            tasks.addTask {
                do {
                    _ = try await eventual.value()
                    return false
                } catch {
                    return error is CancellationError
                }
            }
            tasks.cancelAll()
            #expect(await tasks.next() == true)
        }
        // The value still reaches later readers.
        eventual.fulfil(1)
        #expect(eventual.current == 1)
    }

    @Test func aSecondOneIsKeptOutOfADirectoryUntilTheFirstIsGone() throws {
        let directory = FileManager.default.temporaryDirectory.path + "/muster-lock-\(RandomToken.make())/state"
        defer { try? FileManager.default.removeItem(atPath: directory) }
        var first: FileLock? = try DirectoryLock.acquire(directory)
        do {
            _ = try DirectoryLock.acquire(directory)
            Issue.record("locked twice")
        } catch {
            let own = ProcessInfo.processInfo.processIdentifier
            #expect(error.message?.contains("(process \(own)) works in \(directory)") == true)
            #expect(error.status == .failure)
        }
        withExtendedLifetime(first) {}
        first = nil
        _ = try DirectoryLock.acquire(directory)
    }

    @Test func aDirectoryThatCanNotBeMadeIsAUsageError() {
        do {
            _ = try DirectoryLock.acquire("/dev/null/state")
            Issue.record("made")
        } catch {
            #expect(error.status == .usage)
        }
    }

    @Test func tokensAreLongAndDiffer() {
        let tokens = (0..<100).map { _ in RandomToken.make() }
        #expect(Set(tokens).count == 100)
        #expect(tokens.allSatisfy { $0.count == 32 })
    }
}
