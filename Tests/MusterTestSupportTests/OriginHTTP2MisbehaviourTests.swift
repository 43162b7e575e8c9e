import MusterTestSupport
import SystemPackage
import Testing

/// Misbehaviour of an origin by HTTP/2, with and without TLS, as `curl` sees it.
@Suite(.enabled(if: Curl.isInstalled)) struct OriginHTTP2MisbehaviourTests {
    private static let content = ScriptedOrigin.Content.seeded(seed: 9, size: 1000)
    private static let file = ScriptedOrigin.File(content, etag: "\"v1\"")

    /// The answer to `bytes=100-199` of a file of 1000 bytes.
    private func ranged(
        _ misbehaviour: ScriptedOrigin.Misbehaviour,
        over transport: ScriptedOrigin.Transport,
        _ more: String...
    ) async throws -> (answer: Curl.Answer, request: ScriptedOrigin.Request?) {
        let origin = try await ScriptedOrigin.start(["/a": Self.file], transport: transport)
        origin.misbehave("/a", misbehaviour)
        let ca = origin.caFile?.string ?? "/nonexistent"
        let prior = transport == .h2c ? ["--http2-prior-knowledge"] : []
        let answer = try await Curl.get(
            origin.url("/a"),
            arguments: prior + ["--cacert", ca, "-r", "100-199"] + more
        )
        await origin.stop()
        return (answer, origin.requests.first)
    }

    /// Whether these are the first ten bytes of the range, or fewer: curl drops bytes that it reads together with the end of
    /// the stream.
    private func isBeginning(_ bytes: [UInt8]) -> Bool {
        Self.content.bytes(in: 100..<110).starts(with: bytes)
    }

    @Test(arguments: [ScriptedOrigin.Transport.h2, .h2c])
    func streamIsResetWithACode(transport: ScriptedOrigin.Transport) async throws {
        let answer = try await ranged(.resetStream(afterBytes: 10, code: 11), over: transport).answer
        #expect(answer.exit == .exited(92), "\(answer.log)")
        #expect(answer.log.contains("ENHANCE_YOUR_CALM (err 11)"))
        #expect(isBeginning(answer.body))
        let reset = try await ranged(.reset(afterBytes: 10), over: transport).answer
        #expect(reset.exit == .exited(92) && reset.log.contains("INTERNAL_ERROR (err 2)"), "\(reset.log)")
        let silent = try await ranged(.closeBeforeHeaders, over: transport)
        #expect(silent.answer.exit == .exited(92) && silent.answer.heads.isEmpty, "\(silent.answer.log)")
        #expect(silent.request?.status == 0)
    }

    @Test(arguments: [ScriptedOrigin.Transport.h2, .h2c])
    func goAwayEndsTheConnectionNowOrLater(transport: ScriptedOrigin.Transport) async throws {
        let graceful = try await ranged(.goAway(afterBytes: 10, isFinished: true), over: transport).answer
        #expect(graceful.exit == .exited(0), "\(graceful.log)")
        #expect(graceful.body == Self.content.bytes(in: 100..<200))
        let abrupt = try await ranged(.goAway(afterBytes: 10, isFinished: false), over: transport).answer
        #expect(abrupt.exit != .exited(0), "\(abrupt.log)")
        #expect(isBeginning(abrupt.body))
    }

    @Test func requestAfterGoAwayUsesAnotherConnection() async throws {
        let origin = try await ScriptedOrigin.start(["/a": Self.file, "/b": Self.file], transport: .h2)
        origin.misbehave("/a", .goAway(afterBytes: 0, isFinished: true))
        let ca = try #require(origin.caFile?.string)
        let answer = try await Curl.get(origin.url("/{a,b}"), "--cacert", ca)
        #expect(answer.exit == .exited(0), "\(answer.log)")
        #expect(origin.requests.map(\.connection) == [0, 1])
        await origin.stop()
    }

    @Test(arguments: [ScriptedOrigin.Transport.h2, .h2c])
    func framingThatLiesIsMalformed(transport: ScriptedOrigin.Transport) async throws {
        for lie in [ScriptedOrigin.Misbehaviour.surplus(bytes: 5), .contentLengthOff(by: -5)] {
            // Otherwise curl leaves before the surplus comes.
            let answer = try await ranged(lie, over: transport, "--ignore-content-length").answer
            #expect(answer.exit == .exited(92) && answer.log.contains("PROTOCOL_ERROR"), "\(answer.log)")
        }
        let short = try await ranged(.truncated(afterBytes: 10), over: transport).answer
        #expect(short.exit == .exited(92) && short.log.contains("PROTOCOL_ERROR"), "\(short.log)")
        #expect(isBeginning(short.body))
        for lie in [ScriptedOrigin.Misbehaviour.negativeContentLength, .conflictingContentLengths] {
            let answer = try await ranged(lie, over: transport).answer
            #expect(answer.exit == .exited(92) && answer.heads.isEmpty, "\(answer.log)")
        }
    }

    @Test(arguments: [ScriptedOrigin.Transport.h2, .h2c])
    func lengthIsLeftOut(transport: ScriptedOrigin.Transport) async throws {
        let answer = try await ranged(.chunked, over: transport).answer
        #expect(answer.exit == .exited(0), "\(answer.log)")
        #expect(!answer.head.lowercased().contains("content-length"))
        #expect(answer.body == Self.content.bytes(in: 100..<200))
        let cut = try await ranged(.chunkedUnterminated(afterBytes: 10), over: transport).answer
        #expect(cut.exit == .exited(92), "\(cut.log)")
        #expect(isBeginning(cut.body))
    }

    @Test(arguments: [ScriptedOrigin.Transport.h2, .h2c])
    func answersAreWrongAsByHTTP1(transport: ScriptedOrigin.Transport) async throws {
        #expect(try await ranged(.ignoreRange, over: transport).answer.body == Self.content.allBytes)
        #expect(try await ranged(.interim(103), over: transport).answer.heads.hasPrefix("HTTP/2 103"))
        let shifted = try await ranged(.contentRangeShifted(by: 50), over: transport).answer
        #expect(shifted.head.contains("content-range: bytes 150-249/1000"))
        let limited = try await ranged(.status(429, retryAfter: "7"), over: transport).answer
        #expect(limited.head.contains("HTTP/2 429") && limited.head.contains("retry-after: 7"))
        let hung = try await ranged(.hang(afterBytes: 10), over: transport, "--max-time", "2").answer
        #expect(hung.exit == .exited(28) && hung.body == Self.content.bytes(in: 100..<110))
    }

    @Test(arguments: ScriptedOrigin.Transport.allCases)
    func misbehaviourThatATransportLacksIsNotPlayed(transport: ScriptedOrigin.Transport) async throws {
        let misbehaviours: [ScriptedOrigin.Misbehaviour] = [
            .closeDelimited, .transferEncodingAndContentLength, .garbage("x"), .resetStream(afterBytes: 0, code: 2),
            .goAway(afterBytes: 0, isFinished: true), .uncleanClose(afterBytes: 0), .requires(.clientCertificate),
        ]
        for misbehaviour in misbehaviours where !misbehaviour.isPlayable(over: transport) {
            let (answer, request) = try await ranged(misbehaviour, over: transport)
            #expect(answer.exit == .exited(0), "\(misbehaviour): \(answer.log)")
            #expect(answer.body == Self.content.bytes(in: 100..<200))
            #expect(request?.misbehaviours == [])
        }
    }

    @Test func connectionIsDroppedUnderItsStreams() async throws {
        let answer = try await ranged(.uncleanClose(afterBytes: 10), over: .h2).answer
        #expect(answer.exit != .exited(0))
        #expect(isBeginning(answer.body))
    }

    @Test func closeNotifyOfTLSIsLeftOut() async throws {
        let origin = try await ScriptedOrigin.start(["/a": Self.file], transport: .tls)
        origin.misbehave("/a", .uncleanClose(afterBytes: 10), when: .first(1))
        origin.misbehave("/a", .truncated(afterBytes: 10), when: .after(1))
        let unclean = try await RawClient.get(origin, "/a")
        #expect(unclean.failure?.contains("uncleanShutdown") == true)
        #expect(unclean.body == Self.content.bytes(in: 0..<10))
        let clean = try await RawClient.get(origin, "/a")
        #expect(clean.failure == nil)
        #expect(clean.body == Self.content.bytes(in: 0..<10))
        await origin.stop()
    }
}
