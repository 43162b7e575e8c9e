import MusterAPI
import MusterCore
import MusterCurl
import MusterTestSupport
import Testing

@testable import MusterWorker

/// Jobs that wait for each other, and transfers that wait for the trust.
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

    /// A lease that waits for a silent origin is given back only if nothing has arrived for it and nothing is known of its file.
    @Test func leaseIsGivenBackOnlyAsLongAsNothingHasComeOfIt() {
        let lease = LeaseDocument.first("http://o/f")
        var control = LeaseControl(ChunkBound(lease))
        control.bound.divide(at: 100)
        control.releaseIfUntouched()
        #expect(control.wish == .work, "an answer has told what there is")
        control = LeaseControl(ChunkBound(lease))
        _ = control.bound.claim(1, at: 0)
        control.releaseIfUntouched()
        #expect(control.wish == .work)
        control = LeaseControl(ChunkBound(lease))
        control.releaseIfUntouched()
        #expect(control.wish == .release)
    }

    /// A body that arrives after the trust has ended pauses its transfer; the trust may come back before the job has attached the transfer.
    @Test func transferThatPausedBeforeItIsAttachedGoesOn() async throws {
        let origin = try await ScriptedOrigin.start()
        origin.serve("/f", ScriptedOrigin.File(.seeded(seed: 1, size: 1 << 20)))
        let loop = try CurlLoop()
        let (control, pausing) = (LeaseControl(), PausingHandler())
        let transfer = try loop.start(TransferRequest(url: origin.url("/f")), handler: pausing)
        await pausing.paused.wait(since: 0)
        control.resumeTransfer()
        control.attach(transfer, on: loop)
        await pausing.ended.wait(since: 0)
        await loop.shutdown()
    }
}

/// Holds a transfer at its first piece.
private final class PausingHandler: TransferHandler {
    let (paused, ended) = (Bell(), Bell())

    func head(_ head: ResponseHead) -> HeadVerdict { .accept(limit: nil) }

    func body(_ bytes: UnsafeRawBufferPointer) -> BodyVerdict {
        guard paused.rings == 0 else { return .proceed }
        paused.ring()
        return .pause
    }

    func finished(_ outcome: TransferOutcome) { ended.ring() }
}
