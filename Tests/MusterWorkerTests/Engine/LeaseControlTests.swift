import MusterCore
import Testing

@testable import MusterWorker

/// Jobs that wait for each other.
@Suite(.timeLimit(.minutes(1))) struct LeaseControlTests {
    @Test(arguments: [LeaseControl.Wish.release, .abort]) func waitIsOverWhenTheWorkIsWantedNoMore(
        wish: LeaseControl.Wish
    ) async {
        let (bell, control) = (Bell(), LeaseControl())
        async let goesOn = control.wait(at: bell, since: 0)
        control.ask(wish)
        #expect(await !goesOn)
        #expect(await !control.wait(at: bell, since: bell.rings))
    }

    @Test func waitIsOverWhenAnotherJobRings() async {
        let (bell, control) = (Bell(), LeaseControl())
        async let goesOn = control.wait(at: bell, since: 0)
        bell.ring()
        #expect(await goesOn)
    }

    @Test func waitIsOverAtItsLimit() async {
        #expect(await LeaseControl().wait(at: Bell(), since: 0, limit: .milliseconds(1)))
    }
}
