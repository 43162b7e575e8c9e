import MusterAPI
import MusterCore
import MusterCurl

/// What a fetch lease asks for next, and what the answers so far have settled: the decisions of a fetch without its I/O.
struct FetchPlan: Sendable {
    /// What is asked of the origin.
    private let lease: LeaseDocument
    private let source: LeaseSource
    private let version: String
    /// What every further response must agree with.
    private(set) var known: Representation
    /// Whether size and ranges are settled, by the coordinator or by a response within this lease.
    private(set) var isSettled: Bool
    /// The byte after the last one to fetch; `nil` while only the end of the stream can tell.
    private(set) var end: Int64?
    /// Whether the chunk is the whole file, so that the file can be put in place within this lease.
    private(set) var isWholeFile: Bool
    /// What the first response taught, for a task that was not planned.
    private(set) var learned: Report.Learned?
    /// The digests that tell whether the right content came.
    let digests: [ContentDigest]
    /// Whether the next request carries no Range although the lease would allow one (`http.md` row 16).
    private var asksForEverything = false
    /// Whether the next request carries no If-Range (row 10).
    private var asksUnconditionally = false

    /// The plan of a lease that fetches from `source`, before anything was asked.
    init(_ lease: LeaseDocument, source: LeaseSource, version: String) {
        self.lease = lease
        self.source = source
        self.version = version
        known = lease.representation
        isSettled = lease.planned
        // What is known of a task that nobody planned yet is used to go on with it, not to believe it has no more.
        let size = lease.representation.size
        switch (lease.stream, lease.planned) {
        case (true, _):
            end = lease.end ?? size
            isWholeFile = lease.start == 0
        case (false, true):
            end = lease.end ?? size
            isWholeFile = lease.start == 0 && end == size
        case (false, false):
            let isGoneOnWith = lease.resume.offset > lease.start
            end = isGoneOnWith ? size.map { min(lease.end ?? .max, $0) } : nil
            isWholeFile = isGoneOnWith && lease.start == 0 && size != nil && end == size
        }
        digests = lease.expectedDigests.sorted { $0.key < $1.key }.compactMap { name, value in
            DigestAlgorithm(rawValue: name).flatMap { ContentDigest(algorithm: $0, hexadecimal: value) }
        }
    }

    /// Whether what a predecessor left may be gone on with: only if a response can be told to be of the same content.
    var mayResume: Bool {
        lease.resume.offset > lease.start && !lease.stream
            && (lease.planned || known.hasValidator || (known.size != nil && !digests.isEmpty))
    }

    /// What to ask for when everything before `offset` is there.
    func question(from offset: Int64) -> FetchQuestion {
        let range = range(from: offset)
        let resumes = offset > lease.start
        return FetchQuestion(
            range: range,
            conditional: range != nil && !asksUnconditionally && (isSettled || resumes) && known.strongETag != nil,
            // A resumed chunk must match what is known as strictly as a planned one.
            planned: isSettled || resumes,
            known: known,
            expectedSize: lease.expectedSize,
            expectsDigest: !digests.isEmpty
        )
    }

    private func range(from offset: Int64) -> ByteRange? {
        guard !lease.stream, !asksForEverything, let last = end ?? lease.end else { return nil }
        // A file that is known to fit is asked for plainly: no server gets that wrong (row 19).
        if offset == 0, isWholeFile { return nil }
        if offset == 0, !isSettled, let expected = lease.expectedSize, expected <= last { return nil }
        return ByteRange(start: offset, end: last)
    }

    /// Fields that are ours to set: a caller's would contradict what the answer is judged by.
    private static let ownFields: Set<String> = [
        "range", "if-range", "accept-encoding", "connection", "content-length", "transfer-encoding",
    ]

    /// The request for a question.
    func request(_ question: FetchQuestion) -> TransferRequest {
        var request = TransferRequest(url: source.url)
        request.userAgent = "muster/\(version)"
        for (name, value) in source.headers.sorted(by: { $0.key < $1.key }) {
            let lowered = name.lowercased()
            if Self.ownFields.contains(lowered) { continue }
            if lowered == "user-agent" { request.userAgent = nil }
            request.headers.append(name, value)
        }
        request.headers.append("Accept-Encoding", "identity")
        // After a change or a wrong digest, caches on the way are no longer believed (row 29).
        if lease.version > 1 { request.headers.append("Cache-Control", "no-cache") }
        if let range = question.range, !range.isEmpty {
            request.range = RangeSpec(first: range.start, last: range.end - 1)
        }
        if question.conditional, let etag = known.strongETag { request.headers.append("If-Range", etag) }
        request.connectTimeout = .seconds(15)
        request.firstByteTimeout = .seconds(60)
        request.lowSpeed = LowSpeedLimit(bytesPerSecond: 1 << 10, over: .seconds(30))
        request.maxRedirects = 10
        request.allowedSchemes = ["http", "https"]
        // One connection a transfer: large ranges share no window and no fate (row 23).
        request.httpVersion = .http1
        return request
    }

    /// Asks without Range from now on.
    mutating func askForEverything() {
        asksForEverything = true
    }

    /// Asks without If-Range from now on.
    mutating func askUnconditionally() {
        asksUnconditionally = true
    }

    /// Takes in a body that was accepted. Returns the most bytes of it to take; `nil` for all.
    mutating func settle(_ body: AcceptedBody, status: Int, effectiveURL: String) -> Int64? {
        if !isSettled {
            learned = Report.Learned(
                representation: body.representation,
                splittable: body.isSplittable,
                effectiveURL: effectiveURL,
                source: source.ordinal
            )
        }
        known = Representation(
            size: body.representation.size ?? known.size,
            etag: body.representation.etag ?? known.etag,
            lastModified: body.representation.lastModified ?? known.lastModified
        )
        // A body that comes in no range is the whole content, whatever the lease was for.
        let size = known.size ?? lease.expectedSize
        if status == 206 {
            end = min(lease.end ?? .max, size ?? .max)
            isWholeFile = lease.start == 0 && end == size
        } else {
            end = size
            isWholeFile = true
        }
        isSettled = isSettled || status == 206
        guard let count = body.count else { return end.map { $0 - body.offset } }
        return min(count, (end ?? .max) - body.offset)
    }

    /// Whether the coordinator has to hear at once what was learned: there is more than this lease covers, or nobody
    /// knows how much.
    var isWorthTellingAtOnce: Bool {
        guard let size = learned?.representation.size, let bound = lease.end else { return learned != nil }
        return size > bound
    }

    /// The end of a stream was its end.
    mutating func streamEnded(at offset: Int64) {
        end = offset
        known.size = offset
        learned?.representation.size = offset
    }
}
