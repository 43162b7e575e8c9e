import MusterCore
import Testing

@testable import MusterCoordinator

@Suite("The waiting room of syncs")
struct WaitingRoomTests {
    private func guest(_ session: Int64, _ sequence: Int64, deadline: Int64 = 100) -> WaitingRoom<String>.Guest {
        .init(
            session: SessionID(session), sequence: sequence, room: 4, ahead: 0, deadline: deadline,
            ticket: "\(session)/\(sequence)")
    }

    @Test func syncsThatComeDuringAClaimAreInTheNextOne() {
        var room = WaitingRoom<String>()
        #expect(room.enter(guest(1, 1)) == nil)
        #expect(room.beginClaim().map(\.ticket) == ["1/1"])
        #expect(room.enter(guest(2, 1)) == nil)
        #expect(room.enter(guest(3, 1)) == nil)
        #expect(room.beginClaim().isEmpty, "one claim at a time")
        #expect(room.endClaim(granted: [SessionID(1)], now: 0).map(\.ticket) == ["1/1"])
        #expect(room.beginClaim().map(\.ticket) == ["2/1", "3/1"])
    }

    @Test func aSyncThatGotNothingWaitsForNews() {
        var room = WaitingRoom<String>()
        _ = room.enter(guest(1, 1))
        _ = room.beginClaim()
        #expect(room.endClaim(granted: [], now: 0).isEmpty)
        #expect(room.beginClaim().isEmpty, "nothing is new")
        room.news()
        #expect(room.beginClaim().map(\.ticket) == ["1/1"])
    }

    @Test func aSyncWithSomethingToTellIsAnsweredAtOnce() {
        var room = WaitingRoom<String>()
        for session in 1...2 { _ = room.enter(guest(Int64(session), 1)) }
        _ = room.beginClaim()
        _ = room.enter(guest(3, 1))
        #expect(room.dismiss([SessionID(1), SessionID(3), SessionID(4)]).map(\.ticket) == ["3/1"], "1 is in a claim")
        #expect(room.endClaim(granted: [], now: 0).isEmpty)
        #expect(room.dismiss([SessionID(1)]).map(\.ticket) == ["1/1"])
        #expect(room.count == 1)
    }

    @Test func aSyncThatTakesNoWorkWaitsUntilItIsToldSomething() {
        var room = WaitingRoom<String>()
        _ = room.enter(
            .init(session: SessionID(1), sequence: 1, room: 0, ahead: 0, deadline: 100, ticket: "1/1"))
        #expect(room.beginClaim().isEmpty)
        room.news()
        #expect(room.beginClaim().isEmpty)
        #expect(room.dismiss([SessionID(1)]).map(\.ticket) == ["1/1"])
        _ = room.enter(
            .init(session: SessionID(1), sequence: 2, room: 0, ahead: 0, deadline: 100, ticket: "1/2"))
        #expect(room.expire(now: 100).map(\.ticket) == ["1/2"])
    }

    @Test func aSessionThatIsAskedIsUrgentUntilItIsToldOnce() {
        let asked = AskedSessions()
        asked.add([SessionID(1)])
        #expect(asked.contains(SessionID(1)) && asked.isUrgent(SessionID(1)) && !asked.contains(SessionID(2)))
        asked.settle(SessionID(1), isAsked: true)
        #expect(asked.contains(SessionID(1)) && !asked.isUrgent(SessionID(1)))
        #expect(asked.replace(with: [SessionID(1), SessionID(2)]) == [SessionID(2)])
        asked.settle(SessionID(2), isAsked: false)
        #expect(!asked.contains(SessionID(2)))
        asked.add([SessionID(1)])
        #expect(asked.isUrgent(SessionID(1)), "something more")
        #expect(asked.replace(with: []).isEmpty && !asked.contains(SessionID(1)))
    }

    @Test func newsDuringAClaimIsNotLost() {
        var room = WaitingRoom<String>()
        _ = room.enter(guest(1, 1))
        _ = room.beginClaim()
        room.news()
        #expect(room.endClaim(granted: [], now: 0).isEmpty)
        #expect(room.beginClaim().map(\.ticket) == ["1/1"])
    }

    @Test func aLaterSyncSupersedesAnEarlierOne() {
        var room = WaitingRoom<String>()
        _ = room.enter(guest(1, 1))
        #expect(room.enter(guest(1, 2))?.ticket == "1/1")
        #expect(room.beginClaim().map(\.ticket) == ["1/2"])
    }

    @Test func aLateSyncIsTurnedAwayByANewerOne() {
        var room = WaitingRoom<String>()
        _ = room.enter(guest(1, 2))
        #expect(room.enter(guest(1, 1))?.ticket == "1/1")
        #expect(room.count == 1)
    }

    @Test func aSyncThatIsSupersededDuringItsClaimIsNotAnsweredTwice() {
        var room = WaitingRoom<String>()
        _ = room.enter(guest(1, 1))
        _ = room.beginClaim()
        #expect(room.enter(guest(1, 2))?.ticket == "1/1")
        // The session's next sync gives back what the first one was granted; the second one still needs a claim.
        #expect(room.endClaim(granted: [SessionID(1)], now: 0).isEmpty)
        #expect(room.beginClaim().map(\.ticket) == ["1/2"])
    }

    @Test func timeUpMeansAnAnswer() {
        var room = WaitingRoom<String>()
        _ = room.enter(guest(1, 1, deadline: 10))
        _ = room.beginClaim()
        #expect(room.endClaim(granted: [], now: 5).isEmpty)
        #expect(room.expire(now: 9).isEmpty)
        #expect(room.expire(now: 10).map(\.ticket) == ["1/1"])
        #expect(room.count == 0)
    }

    @Test func aSyncThatDoesNotWaitIsAnsweredAfterOneClaim() {
        var room = WaitingRoom<String>()
        _ = room.enter(guest(1, 1, deadline: 5))
        _ = room.beginClaim()
        #expect(room.endClaim(granted: [], now: 5).map(\.ticket) == ["1/1"])
    }

    @Test func aSyncThatHasGoneIsNotAnswered() {
        var room = WaitingRoom<String>()
        _ = room.enter(guest(1, 3))
        #expect(room.leave(SessionID(1), sequence: 2) == nil)
        #expect(room.leave(SessionID(1), sequence: 3)?.ticket == "1/3")
        #expect(room.beginClaim().isEmpty)
    }

    @Test func closingAnswersEverySync() {
        var room = WaitingRoom<String>()
        _ = room.enter(guest(1, 1))
        _ = room.enter(guest(2, 1))
        #expect(Set(room.close().map(\.ticket)) == ["1/1", "2/1"])
        #expect(room.count == 0)
    }
}
