import Testing
import UnixSignals

@testable import MusterCommandLine

@Suite struct StopSignalsTests {
    @Test func signalsOfOneSecondAreOneAndALaterOneHurries() {
        var reading = StopSignals.Reading()
        let start = ContinuousClock.now
        let wishes = [(UnixSignal.sigterm, 0), (.sigterm, 3), (.sigint, 999), (.sigint, 1_000), (.sigterm, 5_000)]
            .map { reading.wish($0, at: start + .milliseconds($1)) }
        #expect(wishes == [.end(.sigterm), nil, nil, .hurry(.sigint), .hurry(.sigterm)])
    }
}
