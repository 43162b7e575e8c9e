import MusterCore

/// The speeds of single files, from looking at how far they are now and then.
struct TransferSpeeds: Sendable {
    private struct Sample: Sendable {
        var done: Int64
        var at: ContinuousClock.Instant
        var bytesPerSecond: Double?
    }

    /// How much a new look counts against the past: durable offsets move in leaps.
    private static let weight = 0.3
    private var samples: [String: Sample] = [:]

    /// Speeds of nothing yet.
    init() {}

    /// Takes a look and fills in the speeds. Files that are not part of it any more are forgotten.
    mutating func update(_ files: inout [ProgressSnapshot.File], now: ContinuousClock.Instant) {
        var next: [String: Sample] = [:]
        for index in files.indices {
            let file = files[index]
            var sample = Sample(done: file.done, at: now, bytesPerSecond: nil)
            // A file that has less than before has started over: its past says nothing.
            if let last = samples[file.name], file.done >= last.done, now > last.at {
                let speed = Double(file.done - last.done) / (now - last.at).seconds
                sample.bytesPerSecond = last.bytesPerSecond.map { $0 + (speed - $0) * Self.weight } ?? speed
            }
            next[file.name] = sample
            files[index].bytesPerSecond = sample.bytesPerSecond.map { Int64(min(max(0, $0), 1e15)) }
        }
        samples = next
    }
}
