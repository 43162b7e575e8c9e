import Testing

@testable import MusterCoordinator

/// The arithmetic that estimates share.
@Suite("Pace")
struct PaceTests {
    @Test func aPartOfASecondIsASecondAndNothingIsAStop() {
        #expect(Pace.seconds(100, at: 10) == 10 && Pace.seconds(101, at: 10) == 11 && Pace.seconds(0, at: 10) == 0)
        #expect(Pace.seconds(100, at: 0) == nil)
    }

    @Test func longerOfTwoTimesDecides() {
        #expect(Pace.seconds(100, at: 10, atLeast: 60) == 60 && Pace.seconds(100, at: 10, atLeast: 3) == 10)
        #expect(Pace.seconds(100, at: 10, atLeast: nil) == 10 && Pace.seconds(-5, at: 10, atLeast: nil) == 0)
        #expect(Pace.seconds(100, at: 0, atLeast: 60) == nil, "nothing comes")
    }

    @Test func thereIsNoEstimateBeyondAYearOrTheTimeThatThereIs() {
        #expect(Pace.seconds(Pace.longest, at: 1, atLeast: nil) == Pace.longest)
        #expect(Pace.seconds(Pace.longest + 1, at: 1, atLeast: nil) == nil)
        #expect(Pace.seconds(100, at: 10, atLeast: Pace.longest + 1) == nil)
        #expect(Pace.seconds(100, at: 10, atLeast: nil, within: 10) == 10)
        #expect(Pace.seconds(101, at: 10, atLeast: nil, within: 10) == nil)
        #expect(Pace.seconds(100, at: 10, atLeast: 11, within: 10) == nil)
    }
}
