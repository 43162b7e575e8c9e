import MusterTestSupport
import SystemPackage

/// A program that is run to its end, with its time and memory.
struct TimedCommand: Sendable {
    /// What the run took.
    struct Outcome: Sendable {
        /// Seconds from its start to its end.
        var seconds: Double
        /// Seconds of CPU of the program and all its descendants that it waited for.
        var cpuSeconds: Double
        /// The peak of the program's resident memory in MiB, sampled every 10 ms.
        var peakMebibytes: Double
        /// Its standard output.
        var output: String
    }

    /// The program.
    var program: FilePath
    /// Its arguments.
    var arguments: [String]
    /// Changes of the environment.
    var environment: [String: String?] = [:]
    /// How long it may take.
    var limit: Duration = .seconds(1_800)

    /// Runs the program.
    ///
    /// - Throws: ``BenchFailure`` with the end of its output, unless its exit code is 0.
    func run() async throws -> Outcome {
        let before = ProcessTimes(of: "self")?.children ?? 0
        let begin = ContinuousClock.now
        let process = try await TestProcess.start(program, arguments: arguments, environment: environment)
        let watch = Task {
            var peak = 0.0
            while !Task.isCancelled, let now = ProcessMeter.peakMebibytes(of: process.processID) {
                peak = max(peak, now)
                try? await Task.sleep(for: .milliseconds(10))
            }
            return peak
        }
        let exit: TestProcess.Exit
        do {
            exit = try await process.waitForExit(limit: limit)
        } catch {
            watch.cancel()
            try? await process.killTree()
            throw error
        }
        let seconds = (ContinuousClock.now - begin) / .seconds(1)
        watch.cancel()
        guard exit == .exited(0) else {
            let output = (process.standardOutput + process.standardError).suffix(1_000)
            throw BenchFailure("\(process.name) ended as \(exit): \(output)")
        }
        return Outcome(
            seconds: seconds,
            cpuSeconds: (ProcessTimes(of: "self")?.children ?? 0) - before,
            peakMebibytes: await watch.value,
            output: process.standardOutput
        )
    }
}
