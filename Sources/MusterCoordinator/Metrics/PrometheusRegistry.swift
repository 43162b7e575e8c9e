import CoreMetrics
import Synchronization

/// A backend of swift-metrics that keeps counters and histograms of one coordinator, and writes them in the Prometheus text format 0.0.4.
///
/// Each metric gets it as its factory. It is never bootstrapped for the whole process, since tests run several coordinators in one process.
final class PrometheusRegistry: MetricsFactory {
    /// A metric name's explanation, and its samples by their labels.
    private struct Family {
        var help = ""
        var counters: [String: PrometheusCounter] = [:]
        var histograms: [String: PrometheusHistogram] = [:]
    }

    private let families = Mutex<[String: Family]>([:])

    /// Sets the explanation of a name, one line.
    func describe(_ name: String, _ help: String) {
        families.withLock { $0[name, default: Family()].help = help }
    }

    func makeCounter(label: String, dimensions: [(String, String)]) -> any CounterHandler {
        let labels = Self.labels(dimensions)
        return families.withLock { families in
            if let known = families[label]?.counters[labels] { return known }
            let made = PrometheusCounter()
            families[label, default: Family()].counters[labels] = made
            return made
        }
    }

    func makeRecorder(label: String, dimensions: [(String, String)], aggregate: Bool) -> any RecorderHandler {
        histogram(label, dimensions)
    }

    func makeTimer(label: String, dimensions: [(String, String)]) -> any TimerHandler { histogram(label, dimensions) }

    private func histogram(_ label: String, _ dimensions: [(String, String)]) -> PrometheusHistogram {
        let labels = Self.labels(dimensions)
        return families.withLock { families in
            if let known = families[label]?.histograms[labels] { return known }
            let made = PrometheusHistogram()
            families[label, default: Family()].histograms[labels] = made
            return made
        }
    }

    // A metric of this registry lives as long as its coordinator.
    func destroyCounter(_ handler: any CounterHandler) {}
    func destroyRecorder(_ handler: any RecorderHandler) {}
    func destroyTimer(_ handler: any TimerHandler) {}

    /// All metrics, by name and labels.
    func render() -> String {
        let families = families.withLock { $0 }
        return families.sorted { $0.key < $1.key }.map { name, family in
            let kind = family.histograms.isEmpty ? "counter" : "histogram"
            let counters = family.counters.sorted { $0.key < $1.key }.map { labels, counter in
                "\(name)\(labels.isEmpty ? "" : "{\(labels)}") \(counter.value)\n"
            }
            let histograms = family.histograms.sorted { $0.key < $1.key }.map { $1.text(name, labels: $0) }
            return "# HELP \(name) \(family.help)\n# TYPE \(name) \(kind)\n" + counters.joined() + histograms.joined()
        }.joined()
    }

    /// Labels as a sample carries them. Their values are names of our own, in which nothing needs an escape.
    private static func labels(_ dimensions: [(String, String)]) -> String {
        dimensions.map { "\($0.0)=\"\($0.1)\"" }.joined(separator: ",")
    }
}

/// A count that only grows. A count that would overflow begins anew, which readers of counters expect: sizes that workers report must stop no report.
final class PrometheusCounter: CounterHandler {
    private let count = Atomic<Int64>(0)

    var value: Int64 { count.load(ordering: .relaxed) }

    func increment(by amount: Int64) {
        var (isDone, current) = (false, count.load(ordering: .relaxed))
        while !isDone {
            let (sum, isFull) = current.addingReportingOverflow(amount)
            (isDone, current) = count.weakCompareExchange(
                expected: current, desired: isFull ? amount : sum, ordering: .relaxed)
        }
    }

    func reset() { count.store(0, ordering: .relaxed) }
}

/// Counts durations by upper bounds, in seconds.
final class PrometheusHistogram: TimerHandler, RecorderHandler {
    private static let bounds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]

    /// The number of durations by the first bound that they do not exceed, the last one for those beyond all bounds; and their sum.
    private let state = Mutex((counts: [Int](repeating: 0, count: bounds.count + 1), sum: 0.0))

    func recordNanoseconds(_ duration: Int64) { record(Double(duration) / 1e9) }

    func record(_ value: Int64) { record(Double(value)) }

    func record(_ value: Double) {
        let index = Self.bounds.firstIndex { value <= $0 } ?? Self.bounds.count
        state.withLock { state in
            state.counts[index] += 1
            state.sum += value
        }
    }

    /// The samples of the histogram under a name.
    fileprivate func text(_ name: String, labels: String) -> String {
        let (counts, sum) = state.withLock { $0 }
        var (text, total) = ("", 0)
        for (bound, count) in zip(Self.bounds.map { "\($0)" } + ["+Inf"], counts) {
            total += count
            text += "\(name)_bucket{\(labels.isEmpty ? "" : labels + ",")le=\"\(bound)\"} \(total)\n"
        }
        let place = labels.isEmpty ? "" : "{\(labels)}"
        return text + "\(name)_sum\(place) \(sum)\n\(name)_count\(place) \(total)\n"
    }
}
