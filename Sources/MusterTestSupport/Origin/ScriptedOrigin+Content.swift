import Crypto

extension ScriptedOrigin {
    /// The bytes of a file.
    public enum Content: Sendable, Hashable {
        /// Pseudo-random bytes that follow from the seed and the offset alone: any size, without memory.
        case seeded(seed: UInt64, size: Int64)
        /// These bytes.
        case bytes([UInt8])

        /// An empty file.
        public static let empty = Content.bytes([])

        /// How many bytes there are.
        public var size: Int64 {
            switch self {
            case .seeded(_, let size): size
            case .bytes(let bytes): Int64(bytes.count)
            }
        }

        /// The bytes of a range, clamped to the content.
        public func bytes(in range: Range<Int64>) -> [UInt8] {
            let range = range.clamped(to: 0..<size)
            switch self {
            case .bytes(let bytes):
                return Array(bytes[Int(range.lowerBound)..<Int(range.upperBound)])
            case .seeded(let seed, _):
                guard !range.isEmpty else { return [] }
                // Word by word, since a test may compute gigabytes of them without optimization.
                let first = UInt64(range.lowerBound / 8)
                let last = UInt64((range.upperBound - 1) / 8)
                let skipped = Int(range.lowerBound % 8)
                let words = Int(last - first) + 1
                let start = seed &+ first &* SeededGenerator.increment
                let all = [UInt8](unsafeUninitializedCapacity: words * 8) { buffer, count in
                    var state = start
                    var index = 0
                    while index < words {
                        state &+= SeededGenerator.increment
                        let word = SeededGenerator.mix(state).littleEndian
                        UnsafeMutableRawBufferPointer(buffer)
                            .storeBytes(of: word, toByteOffset: index &* 8, as: UInt64.self)
                        index &+= 1
                    }
                    count = words * 8
                }
                let count = Int(range.upperBound - range.lowerBound)
                return all.count == count ? all : Array(all[skipped..<(skipped + count)])
            }
        }

        /// All of it. Only for content that fits into memory.
        public var allBytes: [UInt8] { bytes(in: 0..<size) }

        /// The SHA-256 of all of it, in lower-case hexadecimal; computed piece by piece.
        public func sha256() -> String {
            FileDigest.hexadecimal(digest(SHA256()))
        }
    }

    /// A file of an origin: its content and what its responses say of it.
    public struct File: Sendable, Hashable {
        /// The bytes.
        public var content: Content
        /// The ETag field, quotes included; nil leaves it out.
        public var etag: String?
        /// The Last-Modified field; nil leaves it out.
        public var lastModified: String?
        /// The Content-Type field.
        public var contentType: String
        /// Further fields of every response, such as Repr-Digest or Content-Disposition.
        public var headers: [Header]

        /// Makes a file with a strong ETag of its own and a Last-Modified in the past.
        public init(
            _ content: Content,
            etag: String? = nil,
            lastModified: String? = "Wed, 01 Jan 2020 00:00:00 GMT",
            contentType: String = "application/octet-stream",
            headers: [Header] = []
        ) {
            self.content = content
            self.etag = etag ?? Self.strongETag(of: content)
            self.lastModified = lastModified
            self.contentType = contentType
            self.headers = headers
        }

        private static func strongETag(of content: Content) -> String {
            switch content {
            case .seeded(let seed, let size): "\"\(String(seed, radix: 16))-\(size)\""
            case .bytes(let bytes): "\"\(FileDigest.sha256(bytes).prefix(16))\""
            }
        }
    }

    /// One field of a message.
    public struct Header: Sendable, Hashable {
        /// The field's name as it is written.
        public let name: String
        /// Its value.
        public let value: String

        /// Makes a field.
        public init(_ name: String, _ value: String) {
            self.name = name
            self.value = value
        }
    }
}
