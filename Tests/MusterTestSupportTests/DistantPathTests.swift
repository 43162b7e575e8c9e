import MusterTestSupport
import Testing

@Suite(.enabled(if: Curl.isInstalled)) struct DistantPathTests {
    private static let content = ScriptedOrigin.Content.seeded(seed: 6, size: 3_000_000)
    private static let files = ["/a": ScriptedOrigin.File(content)]

    @Test func passesOnEveryByteAndTheEndOfAConnection() async throws {
        let origin = try await ScriptedOrigin.start(Self.files)
        let path = try await DistantPath.open(to: origin.port, roundTrip: .milliseconds(2))
        let answer = try await Curl.get("\(path.url)/a", "--no-keepalive", "-H", "Connection: close")
        #expect(answer.exit == .exited(0), "\(answer.log)")
        #expect(answer.body == Self.content.allBytes)
        await origin.stop()
    }

    @Test func nothingComesSoonerThanTheDistanceAllows() async throws {
        let origin = try await ScriptedOrigin.start(Self.files)
        let roundTrip = Duration.milliseconds(60)
        let path = try await DistantPath.open(to: origin.port, roundTrip: roundTrip)
        let begin = ContinuousClock.now
        #expect(try await Curl.get("\(path.url)/a", "-r", "0-9").body == Self.content.bytes(in: 0..<10))
        // One round trip for the connection, and one for the answer.
        #expect(ContinuousClock.now - begin >= roundTrip * 2)
        await origin.stop()
    }

    @Test func aConnectionIsNoFasterThanItsRate() async throws {
        let origin = try await ScriptedOrigin.start(Self.files)
        let path = try await DistantPath.open(to: origin.port, roundTrip: .milliseconds(2), bytesPerSecond: 6_000_000)
        let begin = ContinuousClock.now
        #expect(try await Curl.get("\(path.url)/a").body == Self.content.allBytes)
        #expect(ContinuousClock.now - begin >= .milliseconds(500))
        await origin.stop()
    }

    @Test func rateFollowsFromLossAndDistance() {
        #expect(DistantPath.rate(atLoss: 0.01, roundTrip: .milliseconds(50)) == 354_686)
        #expect(DistantPath.rate(atLoss: 0.04, roundTrip: .milliseconds(50)) == 177_343)
    }
}
