/// The bound values of a statement, in one run of bytes: libpq wants an array of pointers, and this needs one
/// allocation.
struct PostgresBinds: Sendable {
    /// Where a value lies in `payload`; `nil` is NULL.
    private(set) var ranges: [Range<Int>?] = []
    private(set) var types: [PostgresType] = []
    private(set) var payload: [UInt8] = []

    var count: Int { types.count }

    mutating func append<T: PostgresEncodable>(_ value: T) {
        let start = payload.count
        // The encoder borrows the payload's storage and gives it back, so that no value is copied a second time.
        var encoder = PostgresEncoder(reusing: payload)
        payload = []
        value.encode(into: &encoder)
        let isNull = encoder.isNull
        payload = encoder.take()
        if isNull {
            payload.removeSubrange(start...)
            ranges.append(nil)
        } else {
            ranges.append(start..<payload.count)
        }
        types.append(T.postgresType)
    }

    mutating func append(contentsOf other: PostgresBinds) {
        let shift = payload.count
        payload.append(contentsOf: other.payload)
        types.append(contentsOf: other.types)
        for range in other.ranges {
            ranges.append(range.map { ($0.lowerBound + shift)..<($0.upperBound + shift) })
        }
    }

    /// Calls `body` with what libpq's parameter arrays want; the pointers are valid during the call only.
    func withParameters<R>(
        _ body: (
            _ types: UnsafePointer<UInt32>?,
            _ values: UnsafePointer<UnsafePointer<CChar>?>?,
            _ lengths: UnsafePointer<Int32>?,
            _ formats: UnsafePointer<Int32>?
        ) -> R
    ) -> R {
        let oids = types.map(\.rawValue)
        let lengths = ranges.map { Int32(clamping: $0?.count ?? 0) }
        let formats = [Int32](repeating: 1, count: count)
        return withUnsafeTemporaryAllocation(of: CChar.self, capacity: 1) { nothing in
            // A zero-length value must still have an address: a null pointer would mean NULL.
            nothing.initialize(repeating: 0)
            return payload.withUnsafeBytes { bytes in
                let base = bytes.baseAddress?.assumingMemoryBound(to: CChar.self)
                let empty = UnsafePointer(nothing.baseAddress)
                let values = ranges.map { range -> UnsafePointer<CChar>? in
                    guard let range else { return nil }
                    guard let base, !range.isEmpty else { return empty }
                    return base + range.lowerBound
                }
                return body(oids, values, lengths, formats)
            }
        }
    }
}
