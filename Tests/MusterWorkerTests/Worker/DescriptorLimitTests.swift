import Glibc
import MusterSystem
import Testing

@testable import MusterWorker

/// How many descriptors a process may have open (F22).
@Suite struct DescriptorLimitTests {
    @Test func workersOfOneProcessShareItsDescriptors() {
        for workers in [1, 2, 3, 16] {
            for sinks in [1, 4, 5, 64] {
                let least = DescriptorLimit.least(workers: workers, sinks: sinks)
                for limit in [least, least + 1, least + 40, least * 2, least * 3, 65_536] {
                    let directories = DescriptorLimit.directories(of: limit, sinks: sinks, workers: workers)
                    let transfers = DescriptorLimit.transfers(of: limit, sinks: sinks, workers: workers)
                    // Six threads of a sink hold twice the directories each; a sink has four of its own and three pools.
                    // The checker has a walk, a bell, and a file in its directory.
                    let ofWorker = sinks * (8 + 6 * 2 * directories) + (3 + 2 * directories) + 7 * transfers
                    let used = 96 + OpenDescriptors.spare + workers * ofWorker
                    #expect(directories >= 2 && transfers >= 1, "\(limit), \(sinks), \(workers)")
                    #expect(used <= limit, "\(limit), \(sinks), \(workers): \(directories), \(transfers)")
                }
            }
        }
        #expect(DescriptorLimit.transfers(of: 20, sinks: 1) == 1)
    }

    @Test func aProcessWithTooFewDescriptorsRunsNoWorker() throws {
        try DescriptorLimit.check(256, sinks: 4)
        let refusal = #expect(throws: WorkerRefusal.self) { try DescriptorLimit.check(256, sinks: 5) }
        #expect(refusal?.description.contains("may open 256 files, and needs") == true, "\(refusal as Any)")
        let least = DescriptorLimit.least(workers: 3, sinks: 2)
        try DescriptorLimit.check(least, sinks: 2, workers: 3)
        #expect(throws: WorkerRefusal.self) { try DescriptorLimit.check(least - 1, sinks: 2, workers: 3) }
    }

    /// Starting a program must leave those of system libraries.
    @Test func aProgramIsStartedOnlyWithDescriptorsToSpare() throws {
        try OpenDescriptors.checkRoomForProgram()
        // Other tests open and close files at the same time.
        let isRefused = (0..<20).contains { _ -> Bool in
            let number = open("/", O_RDONLY | O_CLOEXEC)
            close(number)
            // Twelve more than those that are open, but not as many as are spared besides.
            return (try? OpenDescriptors.checkRoomForProgram(limit: Int(number) + 12)) == nil
        }
        #expect(isRefused)
    }

    /// The dispatch library ends a process in which it gets none.
    @Test func theLastDescriptorsAreLeftToSystemLibraries() throws {
        let number = open("/", O_RDONLY | O_CLOEXEC)
        try #require(number >= 0)
        let enough = Int(number) + OpenDescriptors.spare + 1
        #expect(OpenDescriptors.sparing(number, limit: enough) == number)
        let (refused, error) = (OpenDescriptors.sparing(number, limit: enough - 1), errno)
        #expect(refused == -1 && error == EMFILE)
        #expect(OpenDescriptors.sparing(-1, limit: enough) == -1)
    }

    @Test func aFileThatGotOneOfTheLastDescriptorsIsTakenBack() {
        var (opened, undone) = (0, 0)
        let open = {
            opened += 1
            return Glibc.open("/", O_RDONLY | O_CLOEXEC)
        }
        do throws(SystemError) {
            _ = try Kernel.patiently(open, undo: { undone += 1 }, limit: 0)
            Issue.record("it was kept")
        } catch {
            #expect(error.isLackOfDescriptors)
        }
        #expect(opened > 1 && undone == opened)
    }

    @Test func eachWorkerNeedsItsShare() {
        let one = DescriptorLimit.least(workers: 1)
        #expect(DescriptorLimit.least(workers: 16) == one + 15 * (DescriptorLimit.least(workers: 2) - one))
        #expect(one < 256, "a process that may open 256 files can run one")
    }
}
