import CoreMetrics
import Testing

@testable import MusterCoordinator

/// The text that `GET /metrics` answers with.
struct PrometheusRegistryTests {
    @Test func histogramCountsEachDurationUnderEveryBoundThatItDoesNotExceed() {
        let registry = PrometheusRegistry()
        registry.describe("wait_seconds", "How long it takes.")
        let timer = Timer(label: "wait_seconds", factory: registry)
        for milliseconds in [1, 2, 2, 40_000] as [Int64] { timer.recordNanoseconds(milliseconds * 1_000_000) }
        let lines = registry.render().split(separator: "\n")
        #expect(lines.prefix(2) == ["# HELP wait_seconds How long it takes.", "# TYPE wait_seconds histogram"])
        #expect(lines.contains("wait_seconds_bucket{le=\"0.001\"} 1"))
        #expect(lines.contains("wait_seconds_bucket{le=\"0.0025\"} 3"))
        #expect(lines.contains("wait_seconds_bucket{le=\"30.0\"} 3"))
        #expect(lines.contains("wait_seconds_bucket{le=\"+Inf\"} 4"))
        #expect(lines.contains("wait_seconds_count 4") && lines.contains("wait_seconds_sum 40.005"))
    }

    @Test func counterThatIsFullBeginsAnew() {
        let registry = PrometheusRegistry()
        let counter = Counter(label: "bytes_total", dimensions: [("round", "a")], factory: registry)
        counter.increment(by: Int64.max)
        counter.increment(by: 7)
        #expect(registry.render().hasSuffix("bytes_total{round=\"a\"} 7\n"))
    }

    @Test func metricsOfOneNameAreOneFamily() {
        let registry = PrometheusRegistry()
        for label in ["b", "a"] {
            Counter(label: "runs_total", dimensions: [("round", label)], factory: registry).increment()
        }
        Counter(label: "runs_total", dimensions: [("round", "a")], factory: registry).increment()
        let text = registry.render()
        #expect(text.hasSuffix("# TYPE runs_total counter\nruns_total{round=\"a\"} 2\nruns_total{round=\"b\"} 1\n"))
    }

    @Test func workIsTimedAlsoWhereItFails() async {
        struct Broken: Error {}
        let metrics = CoordinatorMetrics()
        await #expect(throws: Broken.self) { try await metrics.time(.claims) { throw Broken() } }
        #expect(metrics.render().contains("\nmuster_claim_seconds_count 1\n"))
    }
}
