import Crypto
import MusterCore

/// Computes several digests of one content in one pass.
struct ContentHasher {
    private enum Computation {
        case sha256(SHA256)
        case sha512(SHA512)
        case sha1(Insecure.SHA1)
        case md5(Insecure.MD5)
        case crc32c(UInt32)
    }

    private var computations: [Computation]

    /// Begins the digests of `algorithms`; an empty set costs nothing.
    init(_ algorithms: Set<DigestAlgorithm>) {
        computations = algorithms.map { algorithm in
            switch algorithm {
            case .sha256: .sha256(SHA256())
            case .sha512: .sha512(SHA512())
            case .sha1: .sha1(Insecure.SHA1())
            case .md5: .md5(Insecure.MD5())
            case .crc32c: .crc32c(CRC32C.empty)
            }
        }
    }

    /// Processes the content's next bytes.
    mutating func update(_ bytes: UnsafeRawBufferPointer) {
        for index in computations.indices {
            switch computations[index] {
            case .sha256(var hash):
                hash.update(bufferPointer: bytes)
                computations[index] = .sha256(hash)
            case .sha512(var hash):
                hash.update(bufferPointer: bytes)
                computations[index] = .sha512(hash)
            case .sha1(var hash):
                hash.update(bufferPointer: bytes)
                computations[index] = .sha1(hash)
            case .md5(var hash):
                hash.update(bufferPointer: bytes)
                computations[index] = .md5(hash)
            case .crc32c(let crc): computations[index] = .crc32c(CRC32C.extend(crc, bytes))
            }
        }
    }

    /// The digests of everything so far.
    func finish() -> [ContentDigest] {
        computations.map { computation in
            switch computation {
            case .sha256(let hash): ContentDigest(algorithm: .sha256, bytes: hash.finalize())
            case .sha512(let hash): ContentDigest(algorithm: .sha512, bytes: hash.finalize())
            case .sha1(let hash): ContentDigest(algorithm: .sha1, bytes: hash.finalize())
            case .md5(let hash): ContentDigest(algorithm: .md5, bytes: hash.finalize())
            case .crc32c(let crc):
                ContentDigest(algorithm: .crc32c, bytes: withUnsafeBytes(of: crc.bigEndian) { Array($0) })
            }
        }
    }
}
