import Testing

@testable import MusterWorker

/// How many descriptors a process may have open (F22).
@Suite struct DescriptorLimitTests {
    @Test func workersOfOneProcessShareItsDescriptors() {
        for limit in [1_024, 4_096, 65_536] {
            let alone = DescriptorLimit.transfers(of: limit, sinks: 1)
            for workers in [2, 4, 16] {
                let each = DescriptorLimit.transfers(of: limit, sinks: 1, workers: workers)
                #expect(each >= 1 && (each == 1 || each * workers <= alone), "\(limit), \(workers)")
            }
        }
        #expect(DescriptorLimit.transfers(of: 20, sinks: 1) == 1)
    }

    @Test func eachWorkerNeedsItsShare() {
        let one = DescriptorLimit.least(workers: 1)
        #expect(DescriptorLimit.least(workers: 16) == one + 15 * (DescriptorLimit.least(workers: 2) - one))
        #expect(one < 256, "a process that may open 256 files can run one")
    }
}
