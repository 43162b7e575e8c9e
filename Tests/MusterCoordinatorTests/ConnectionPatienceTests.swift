import NIOCore
import Testing

@testable import MusterCoordinator

@Suite("How long a peer may keep a coordinator waiting")
struct ConnectionPatienceTests {
    private let limits: ConnectionLimits = {
        var limits = ConnectionLimits(descriptors: 1_024)
        limits.firstHead = .seconds(10)
        limits.idle = .seconds(60)
        limits.bodyWindow = .seconds(30)
        limits.leastBody = 100
        limits.farewell = .seconds(5)
        return limits
    }()

    private func at(_ seconds: Int64) -> NIODeadline { .uptimeNanoseconds(0) + .seconds(1_000 + seconds) }

    @Test func theFirstHeadHasLessTimeThanALaterOne() {
        var patience = ConnectionPatience(limits, now: at(0))
        #expect(patience.deadline == at(10))
        patience.receivedHead(now: at(1))
        patience.receivedEnd(now: at(1))
        patience.answered(now: at(5))
        #expect(patience.deadline == at(65))
        #expect(patience.isIdle)
        let isOverEarly = patience.isOver(now: at(64), wantsBytes: true)
        #expect(!isOverEarly)
        let isOver = patience.isOver(now: at(65), wantsBytes: true)
        #expect(isOver)
    }

    @Test func whileAnAnswerIsMadeThePeerOwesNothing() {
        var patience = ConnectionPatience(limits, now: at(0))
        patience.receivedHead(now: at(1))
        patience.receivedEnd(now: at(2))
        #expect(patience.deadline == nil)
        #expect(patience.waitingSince == nil)
        let isOver = patience.isOver(now: at(100_000), wantsBytes: true)
        #expect(!isOver)
        #expect(!patience.isIdle)
    }

    @Test func aBodyThatHardlyComesIsOver() {
        var patience = ConnectionPatience(limits, now: at(0))
        patience.receivedHead(now: at(0))
        patience.receivedBody(bytes: 99)
        let isOver = patience.isOver(now: at(30), wantsBytes: true)
        #expect(isOver)
    }

    @Test func aBodyThatComesHasAWindowAfterTheOther() {
        var patience = ConnectionPatience(limits, now: at(0))
        patience.receivedHead(now: at(0))
        for window in 1...1_000 {
            patience.receivedBody(bytes: 100)
            let isOverEarly = patience.isOver(now: at(Int64(window) * 30), wantsBytes: true)
            #expect(!isOverEarly)
        }
        let isOver = patience.isOver(now: at(1_001 * 30), wantsBytes: true)
        #expect(isOver)
    }

    @Test func aCoordinatorThatIsSlowerThanItsPeerBlamesItselfAlone() {
        var patience = ConnectionPatience(limits, now: at(0))
        patience.receivedHead(now: at(0))
        let isOver = patience.isOver(now: at(30), wantsBytes: false)
        #expect(!isOver)
        #expect(patience.deadline == at(60))
    }

    @Test func dataAfterTheAnswerHasTheTimeOfAFarewell() {
        var patience = ConnectionPatience(limits, now: at(0))
        patience.receivedHead(now: at(0))
        patience.answered(now: at(1))
        patience.receivedBody(bytes: 1 << 20)
        #expect(patience.deadline == at(6))
        let isOver = patience.isOver(now: at(6), wantsBytes: true)
        #expect(isOver)
        patience.receivedEnd(now: at(5))
        #expect(patience.deadline == at(65))
    }

    @Test func requestsThatComeAtOnceAreAnsweredOneAfterTheOther() {
        var patience = ConnectionPatience(limits, now: at(0))
        for _ in 0..<2 {
            patience.receivedHead(now: at(0))
            patience.receivedEnd(now: at(0))
        }
        patience.answered(now: at(1))
        #expect(patience.deadline == nil)
        patience.answered(now: at(2))
        #expect(patience.deadline == at(62))
    }

    @Test func aPeerThatIsToldToHangUpHasToDoSo() {
        var patience = ConnectionPatience(limits, now: at(0))
        patience.hungUp(now: at(1))
        #expect(patience.deadline == at(6))
        patience.answered(now: at(2))
        #expect(patience.deadline == at(6))
    }

    @Test(arguments: [(150, 7_300, false), (200, 7_300, true), (64, 0, true)])
    func aCoordinatorThatOthersReachNeedsDescriptors(_ descriptors: Int, _ port: Int, _ isEnough: Bool) {
        var configuration = CoordinatorConfiguration(database: "")
        (configuration.listenPort, configuration.connections) = (port, ConnectionLimits(descriptors: descriptors))
        #expect(((try? configuration.check()) != nil) == isEnough)
    }

    @Test(arguments: [(0, 16), (64, 32), (1_024, 512), (65_536, 10_000)])
    func halfOfTheDescriptorsAreForConnections(_ descriptors: Int, _ connections: Int) {
        #expect(ConnectionLimits(descriptors: descriptors).count == max(16, connections))
    }
}
