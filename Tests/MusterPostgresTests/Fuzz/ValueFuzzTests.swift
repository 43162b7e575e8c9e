import CLibpq
import MusterTestSupport
import Testing

@testable import MusterPostgres

/// Values in PostgreSQL's binary format, which are read by hand.
@Suite struct ValueFuzzTests {
    /// A field with these bytes, as a result holds it.
    private static func read<Value: PostgresDecodable>(
        _: Value.Type, _ bytes: [UInt8], _ type: PostgresType
    ) throws -> Value? {
        let owner = ResultHandle(owning: try #require(PQmakeEmptyPGresult(nil, PGRES_TUPLES_OK)))
        return bytes.withUnsafeBytes { buffer in
            try? Value(
                postgres: PostgresValue(owner: owner, start: buffer.baseAddress, length: buffer.count, type: type))
        }
    }

    /// What is bound for a value.
    private static func written(_ value: some PostgresEncodable) -> [UInt8] {
        var binds = PostgresBinds()
        binds.append(value)
        return binds.payload
    }

    @Test func arrayIsReadWithinItsBytes() throws {
        let corpus = [
            Self.written([1, -1, .max] as [Int64]), Self.written(["a", "", "ü"]), Self.written([nil, 5] as [Int64?]),
            Self.written([true, false]), Self.written([] as [Int64]), Self.written([1, 2] as [Int32]),
        ]
        try ByteFuzzer(bytes: corpus).run { input in
            let numbers = try Self.read([Int64?].self, input.bytes, .int8Array)
            let texts = try Self.read([String?].self, input.bytes, .textArray)
            let flags = try Self.read([Bool].self, input.bytes, .boolArray)
            // Each element has at least the four bytes of its length.
            let most = max(numbers?.count ?? 0, texts?.count ?? 0, flags?.count ?? 0)
            try input.expect(most <= input.bytes.count / 4, "there are \(most) elements")
            if let numbers {
                let again = try Self.read([Int64?].self, Self.written(numbers), .int8Array)
                try input.expect(again == numbers, "\(numbers) become \(again ?? [])")
            }
            if let texts {
                let bytes = texts.reduce(0) { $0 + ($1?.utf8.count ?? 0) }
                // A byte that is not UTF-8 is replaced by three.
                try input.expect(bytes <= 3 * input.bytes.count, "the texts have \(bytes) bytes")
            }
            return numbers != nil || texts != nil || flags != nil
        }
    }

    @Test func momentsAndDurationsAreBoundAsTheyWereRead() throws {
        let corpus = [
            Self.written(PostgresTimestamp(microsecondsSinceEpoch: 1_772_366_400_123_456)),
            Self.written(PostgresTimestamp.infinity), Self.written(PostgresTimestamp.negativeInfinity),
            Self.written(Duration.seconds(90)), Self.written(Duration.microseconds(-1)), Self.written(1.5),
        ]
        try ByteFuzzer(bytes: corpus, longestBytes: 24).run { input in
            let moment = try Self.read(PostgresTimestamp.self, input.bytes, .timestamptz)
            if let moment { try input.expect(Self.written(moment) == input.bytes, "\(moment) is bound otherwise") }
            let duration = try Self.read(Duration.self, input.bytes, .interval)
            if let duration {
                let again = try Self.read(Duration.self, Self.written(duration), .interval)
                let isBeyond = Self.magnitude(duration) > .microseconds(Int64.max)
                try input.expect(isBeyond || again == duration, "\(duration) becomes \(again ?? .zero)")
            }
            let number = try Self.read(Double.self, input.bytes, .float8)
            if let number { try input.expect(Self.written(number) == input.bytes, "\(number) is bound otherwise") }
            return moment != nil || duration != nil
        }
    }

    private static func magnitude(_ duration: Duration) -> Duration {
        duration < .zero ? .zero - duration : duration
    }
}
