import MusterCore
import MusterCurl

/// The body of a transfer whose content is stored decoded: the decoded bytes are written, and the body counts as complete
/// only if the coding ends with it.
///
/// `@unchecked Sendable` is safe here: a loop never makes two calls to one handler at once, and each sees what the one before did.
final class DecodedBody: @unchecked Sendable {
    private let coding: ContentCoding
    private let decoder: ContentDecoder
    /// How many bytes of the content are still wanted.
    private var wanted: Int64?
    private var failure: ContentDecoder.Failure?
    private var hasSurplus = false
    private let stated: [ContentDigest]
    private var hasher: ContentHasher

    /// A body of which at most `limit` bytes are wanted, once decoded.
    ///
    /// - Parameter stated: digests of the coded content, as stated by the origin (range contract, row 35).
    init(_ coding: ContentCoding, stated: [ContentDigest], limit: Int64?) {
        self.coding = coding
        self.stated = stated
        hasher = ContentHasher(Set(stated.map(\.algorithm)))
        decoder = ContentDecoder(coding)
        wanted = limit
    }

    /// Decodes a piece and writes the decoded bytes.
    func write(_ bytes: UnsafeRawBufferPointer, to writer: ChunkWriter) -> ChunkWriter.Result {
        var result = ChunkWriter.Result.written
        hasher.update(bytes)
        do throws(ContentDecoder.Failure) {
            try decoder.decode(bytes) { piece in
                let count = min(Int64(piece.count), wanted ?? .max)
                hasSurplus = count < piece.count
                wanted = wanted.map { $0 - count }
                if count > 0 { result = writer.write(UnsafeRawBufferPointer(rebasing: piece[..<Int(count)])) }
                return !hasSurplus && (result == .written || result == .deferred)
            }
        } catch {
            failure = error
        }
        if case .written = result, failure != nil || hasSurplus { return .unwanted }
        return result
    }

    /// What the end of the transfer means for the content.
    func outcome(_ outcome: TransferOutcome) -> TransferOutcome {
        let statistics = outcome.statistics
        switch outcome {
        case .stopped where hasSurplus: return .completed(statistics, .surplus)
        case .stopped:
            guard let failure else { return outcome }
            return .failed(.protocolViolation(detail("can't be decoded: \(failure.reason)")), statistics)
        // A closed connection may have cut the content off; the end of a framed body can't have.
        case .completed(_, .connectionClosed) where !decoder.isComplete || decoder.isUntouched:
            return .failed(.truncated(detail("is not complete where the connection ends")), statistics)
        case .completed where !decoder.isComplete:
            return .failed(.protocolViolation(detail("is not complete where the body ends")), statistics)
        case .completed(_, .surplus): return outcome
        case .completed:
            let found = hasher.finish()
            guard let wrong = stated.first(where: { !found.contains($0) }) else { return outcome }
            let what = "has another \(wrong.algorithm.rawValue) than \(wrong.hexadecimal), which the origin states"
            return .failed(.protocolViolation(detail(what)), statistics)
        case .refused, .cancelled, .failed: return outcome
        }
    }

    private func detail(_ what: String) -> TransferError.Detail {
        TransferError.Detail(code: 0, message: "the content, coded as \(coding.rawValue), \(what)")
    }
}
