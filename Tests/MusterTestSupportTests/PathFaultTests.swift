import MusterTestSupport
import Testing

/// What a path does while it has a fault. What passes is never changed.
@Suite(.enabled(if: Curl.isInstalled)) struct PathFaultTests {
    private static let content = ScriptedOrigin.Content.seeded(seed: 8, size: 300_000)

    /// An origin behind a path.
    private struct Scene {
        let origin: ScriptedOrigin
        let path: DistantPath

        init() async throws {
            origin = try await ScriptedOrigin.start(["/a": ScriptedOrigin.File(PathFaultTests.content)])
            path = try await DistantPath.open(to: .port(origin.port))
        }

        var url: String { "\(path.url)/a" }

        /// The file comes whole.
        func works() async throws {
            let answer = try await Curl.get(url)
            #expect(answer.exit == .exited(0), "\(answer.log)")
            #expect(answer.body == PathFaultTests.content.allBytes)
        }
    }

    @Test(arguments: [
        PathFault.latency(.milliseconds(5)), .bandwidth(bytesPerSecond: 3_000_000), .slices(bytes: 1_000),
        .cut(afterBytes: 1 << 20, .toClient), .reset,
    ])
    func faultThatEndsNothingLeavesEveryByteInItsPlace(_ fault: PathFault) async throws {
        let scene = try await Scene()
        await scene.path.inject(fault)
        try await scene.works()
        await scene.origin.stop()
    }

    @Test func bytesThatComeAfterADelayEndedDoNotOvertakeTheOthers() async throws {
        let scene = try await Scene()
        scene.origin.hold("/a", afterBytes: 100_000)
        await scene.path.inject(.latency(.milliseconds(300)))
        async let answer = Curl.get(scene.url)
        try await scene.origin.waitUntil("/a", bytesSent: 100_000)
        await scene.path.inject(nil)
        scene.origin.release("/a")
        #expect(try await answer.body == Self.content.allBytes)
        await scene.origin.stop()
    }

    @Test(arguments: [PathFault.partition(.toClient), .hang])
    func whatIsHeldBackGoesOnWhenTheFaultEnds(_ fault: PathFault) async throws {
        let scene = try await Scene()
        let isDone = Observed(false)
        scene.origin.hold("/a", afterBytes: 0)
        async let answer = {
            let answer = try await Curl.get(scene.url)
            isDone.update { $0 = true }
            return answer
        }()
        // The request has passed, and its answer does not.
        try await scene.origin.waitForRequests("/a", count: 1)
        await scene.path.inject(fault)
        scene.origin.release("/a")
        let other = try await DistantPath.open(to: .port(scene.origin.port))
        #expect(try await Curl.get("\(other.url)/a").body == Self.content.allBytes)
        #expect(!isDone.value)
        await scene.path.inject(nil)
        #expect(try await answer.body == Self.content.allBytes)
        await scene.origin.stop()
    }

    @Test func answerThatIsCutIsLostAndItsRequestWasServed() async throws {
        let scene = try await Scene()
        await scene.path.inject(.cut(afterBytes: 0, .toClient))
        #expect(try await Curl.get(scene.url).exit != .exited(0))
        #expect(scene.origin.requests.count == 1)
        #expect(scene.path.lostAnswers == 1)
        await scene.path.inject(nil)
        try await scene.works()
        await scene.origin.stop()
    }

    @Test func requestThatIsCutIsNotServed() async throws {
        let scene = try await Scene()
        await scene.path.inject(.cut(afterBytes: 3, .toServer))
        #expect(try await Curl.get(scene.url).exit != .exited(0))
        #expect(scene.origin.requests.isEmpty)
        #expect(scene.path.lostAnswers == 0)
        await scene.origin.stop()
    }

    @Test func resetEndsOpenConnectionsAndNoNewOnes() async throws {
        let scene = try await Scene()
        scene.origin.hold("/a", afterBytes: 100)
        async let answer = Curl.get(scene.url)
        try await scene.origin.waitUntil("/a", bytesSent: 100)
        await scene.path.inject(.reset)
        #expect(try await answer.exit != .exited(0))
        scene.origin.release("/a")
        try await scene.works()
        await scene.origin.stop()
    }
}
