import MusterAPI
import MusterCore
import Testing

struct TransferPolicyTests {
    @Test func everyFieldSurvives() throws {
        let json =
            #"{"chunksWithoutValidator":true,"computeDigests":["sha256","crc32c"],"ifExists":"rename","#
            + #""keepModificationTime":true,"names":"suggested","validators":"sizeAndDigest"}"#
        let policy = try document(TransferPolicy.self, json)
        #expect(policy.ifExists == .rename)
        #expect(policy.validators == .sizeAndDigest)
        #expect(policy.names == .suggested)
        #expect(policy.computeDigests == [.sha256, .crc32c])
        #expect(try jsonText(policy) == json)
        #expect(try document(TransferPolicy.self, "{}") == TransferPolicy())
        #expect(try jsonText(TransferPolicy()) == "{}")
    }

    @Test(
        arguments: [
            (#"{"ifexists":"verify"}"#, "/ifexists"), (#"{"ifExists":"overwrite"}"#, "/ifExists"),
            (#"{"validators":"none"}"#, "/validators"),
            (#"{"chunksWithoutValidator":"yes"}"#, "/chunksWithoutValidator"),
            (#"{"keepModificationTime":1}"#, "/keepModificationTime"),
            (#"{"names":"url"}"#, "/names"), (#"{"computeDigests":["sha3"]}"#, "/computeDigests/0"),
            (#"{"computeDigests":"sha256"}"#, "/computeDigests"),
            (#"{"computeDigests":["md5","md5"]}"#, "/computeDigests"),
        ])
    func whatIsNotUnderstoodIsRefused(json: String, pointer: String) {
        #expect(refusal(TransferPolicy.self, json)?.pointer == pointer)
    }

    /// Databases and clients' programs hold these names.
    @Test func namesStay() {
        #expect(ExistingFileRule.allCases.map(\.rawValue) == ["verify", "fail", "replace", "rename"])
        #expect(ValidatorRule.allCases.map(\.rawValue) == ["strict", "sizeAndDigest"])
        #expect(NameSource.allCases.map(\.rawValue) == ["given", "suggested"])
        #expect(FetchOptions.HTTPVersion.allCases.map(\.rawValue) == ["1.1", "2", "2-prior-knowledge"])
    }
}

struct OriginPatchTests {
    private static let noon = #""2026-03-01T12:00:00.000Z""#

    @Test(
        arguments: [
            ("{}", .keep, .keep), (#"{"maxConnections":1}"#, .set(1), .keep),
            (#"{"maxConnections":100000}"#, .set(100_000), .keep),
            (#"{"maxConnections":null}"#, .clear, .keep), (#"{"pausedUntil":null}"#, .keep, .clear),
            (
                #"{"maxConnections":null,"pausedUntil":\#(noon)}"#, .clear,
                .set(Timestamp(microseconds: 1_772_366_400_000_000))
            ),
        ] as [(String, Change<Int32>, Change<Timestamp>)]
    )
    func absentFieldStaysAndNullClears(
        json: String, maxConnections: Change<Int32>, pausedUntil: Change<Timestamp>
    ) throws {
        let patch = OriginPatch(maxConnections: maxConnections, pausedUntil: pausedUntil)
        #expect(try document(OriginPatch.self, json) == patch)
        #expect(try jsonText(patch) == json)
    }

    @Test(
        arguments: [
            (#"{"bytesPerSecond":1}"#, .set(1)), (#"{"bytesPerSecond":null}"#, .clear), ("{}", .keep),
        ] as [(String, Change<Int64>)])
    func rateOfAnOriginIsSetAndTakenAway(json: String, rate: Change<Int64>) throws {
        #expect(try document(OriginPatch.self, json) == OriginPatch(bytesPerSecond: rate))
        #expect(try jsonText(OriginPatch(bytesPerSecond: rate)) == json)
    }

    @Test(
        arguments: [
            (#"{"maxConnections":0}"#, "/maxConnections"), (#"{"maxConnections":100001}"#, "/maxConnections"),
            (#"{"maxConnections":-1}"#, "/maxConnections"), (#"{"maxConnections":1.5}"#, "/maxConnections"),
            (#"{"maxConnections":4294967297}"#, "/maxConnections"), (#"{"maxConnections":"8"}"#, "/maxConnections"),
            (#"{"bytesPerSecond":0}"#, "/bytesPerSecond"), (#"{"bytesPerSecond":1125899906842624}"#, "/bytesPerSecond"),
            (#"{"bytesPerSecond":"1MiB/s"}"#, "/bytesPerSecond"),
            (#"{"pausedUntil":"soon"}"#, "/pausedUntil"), (#"{"pausedUntil":0}"#, "/pausedUntil"),
            (#"{"pauseUntil":null}"#, "/pauseUntil"), ("[]", ""),
        ])
    func whatIsImpossibleIsRefused(json: String, pointer: String) {
        #expect(refusal(OriginPatch.self, json)?.pointer == pointer)
    }
}
