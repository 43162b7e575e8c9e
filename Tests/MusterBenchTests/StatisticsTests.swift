import Testing

@testable import muster_bench

@Suite struct StatisticsTests {
    @Test func medianIsTheMiddleOrTheMeanOfTheTwoInTheMiddle() {
        #expect(Statistics([]).median == nil)
        #expect(Statistics([3, 1, 2]).median == 2)
        #expect(Statistics([4, 1, 3, 2]).median == 2.5)
    }

    @Test func percentileIsAMeasurementThatWasMade() {
        let statistics = Statistics((1...200).map { Double($0) })
        #expect(statistics.percentile(0.5) == 100)
        #expect(statistics.percentile(0.99) == 198)
        #expect(statistics.percentile(1) == 200)
        #expect(statistics.percentile(0) == 1)
        #expect(Statistics([7]).percentile(0.99) == 7)
    }

    @Test(arguments: [
        (0.0, "0"), (0.0123, "0.012"), (0.9996, "1.000"), (1.234, "1.23"), (12.34, "12.3"), (123.4, "123"),
        (12_345.6, "12,346"), (1_000_000, "1,000,000"), (-2.5, "-2.50"), (.infinity, "–"),
    ])
    func figuresHaveThreeSignificantDigits(value: Double, text: String) {
        #expect(Figure.text(value) == text)
    }

    @Test func countsAreWhole() {
        #expect([7, 40, 3_000, 1_000_000].map(Figure.count) == ["7", "40", "3,000", "1,000,000"])
    }

    @Test func ratioComparesRoundsThatWereMadeTogether() throws {
        // The machine was four times as slow in the second round, so the ratio of the two medians (90 / 50) would differ.
        let muster = Row(subject: "muster", role: .muster, samples: [100, 25, 90].map { Sample(value: $0) })
        let peer = Row(subject: "peer", role: .peer, samples: [50, 12.5, 180].map { Sample(value: $0) })
        var section = Section(
            name: "s", title: "S", unit: "files/s", better: .higher, rows: [muster, peer], notes: [])
        #expect(section.ratio(of: muster, to: peer) == 2)
        section.better = .lower
        #expect(section.ratio(of: muster, to: peer) == 0.5)
        #expect(section.comparisons(of: peer).isEmpty)
    }

    @Test func rowKeepsMediansOfCostsAndTheMostMemory() {
        let samples = [(1.0, 10.0), (3, 30), (2, 20)].map { value, memory in
            Sample(
                value: value, cpuSeconds: ["worker": value], peakMebibytes: ["worker": memory], facts: ["p99": value])
        }
        let row = Row(subject: "muster", role: .muster, samples: samples)
        #expect(row.values == [1, 3, 2])
        #expect(row.cpuSeconds == ["worker": 2])
        #expect(row.peakMebibytes == ["worker": 30])
        #expect(row.facts == ["p99": 2])
    }
}
