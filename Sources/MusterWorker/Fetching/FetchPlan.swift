import MusterAPI
import MusterCore
import MusterCurl
import MusterSystem

/// What a fetch lease asks for next, and what the answers so far have settled: the decisions of a fetch without its I/O.
struct FetchPlan: Sendable {
    /// The lease that is worked on.
    let lease: LeaseDocument
    let source: LeaseSource
    private let isSilent: Bool
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
    /// Whether a body came with a content coding.
    private(set) var isCoded = false
    /// The facts of the last answer, for the report of a failure.
    var answer: OriginAnswer?
    /// What stood at the task's path before anything was asked, as long as it may turn out to be the content.
    var standing: StandingFile?
    /// A file of the sink that may still turn out to be the content.
    private(set) var held: HeldFile?
    /// How the source is asked now (range contract, "The ladder").
    private(set) var ladder: Ladder
    /// The size stated by an answer that contradicted the way of asking.
    var claimedSize: Int64?
    /// The last whole read whose end is not proved, the number of such reads, and the most bytes of one of them (row 14).
    private(set) var unproven: (read: DurablePrefix, count: Int, longest: Int64)?
    /// Whether the stated total is exactly the end of the part that was asked for: some origins state the part's end (row 2). One request beyond it decides.
    var doubtsEnd = false
    /// The manner of asking, besides the rung.
    var manner = Manner()
    /// Whether `manner` differs from that of the last request, which was refused.
    var triesManner = false
    /// Whether a refusal on a connection that was used before may be due to the reuse.
    var doubtsKept = true
    /// Whether a part that is slow, or stops, is given up for a plain GET that is known to be faster.
    var doubtsSpeed = false
    /// Whether the speed of the transfer is set by a byte budget.
    var keepsToBudget = false
    /// How the body came.
    var arrival = Arrival()
    /// How far it is decided whether a refusal is a limit.
    var turns = Turns.taken(0)
    /// How often a refused file was asked for again because others were served.
    var waits = 0
    /// The rungs that were left because of contradictions.
    var leftRungs: [Rung] = []
    /// How many answers in a row brought few bytes of what was asked for (row 3).
    private var smallAnswers = 0
    /// Whether the next request carries no If-Range (row 10).
    private var asksUnconditionally = false
    /// Whether the rest of a plain GET that was cut is asked for with a Range: until the source contradicts that within this lease.
    private var asksForRest = true

    /// The plan of a lease that fetches from `source`, before anything was asked.
    ///
    /// - Parameters:
    ///   - rung: the rung on which a source begins of which nothing is known.
    ///   - isSilent: whether its origin was silent lately, whatever was asked.
    init(_ lease: LeaseDocument, source: LeaseSource, from rung: Rung = .chunks, isSilent: Bool = false) {
        self.lease = lease
        self.source = source
        self.isSilent = isSilent
        let isNew = !lease.planned && lease.start == 0 && lease.resume.offset == 0
        // A running request can bring the chunk too: giving it back is better than another connection.
        doubtsKept = lease.reach == nil
        ladder = Ladder(from: isNew ? max(rung, lease.rung) : lease.rung)
        known = lease.representation
        isSettled = lease.planned
        // Only before anything is known of the content, and only for the source that the file was fetched from. Bodies of other sources are measured by it.
        let isFirst = !lease.planned && lease.start == 0 && lease.resume.offset == 0 && lease.version == 1
        held = isFirst && source.ordinal == 0 ? lease.have : nil
        // For a task that is not planned, the known size serves to resume it, not to prove that the file has no more bytes.
        let size = lease.representation.size
        switch (lease.rung, lease.planned) {
        case (.whole, _):
            end = lease.end ?? size
            isWholeFile = lease.start == 0
        case (_, true):
            end = lease.end ?? size
            isWholeFile = lease.start == 0 && end == size
        case (_, false):
            let isGoneOnWith = lease.resume.offset > lease.start
            end = isGoneOnWith ? size.map { min(lease.end ?? .max, $0) } : nil
            isWholeFile = isGoneOnWith && lease.start == 0 && size != nil && end == size
        }
    }

    /// The digests that decide whether the right content came: the caller's, and those stated so far.
    var digests: ExpectedDigests { ExpectedDigests(given: lease.expectedDigests, stated: known.digests) }

    /// Whether nodes of an origin, or mirrors, may state different validators, since a digest decides (rows 11 and 30).
    private var goesByDigest: Bool {
        let isProvable = digests.tellsContentsApart || known.statesDigest
        return isProvable && (lease.isOtherMirror == true || lease.policy?.validators == .sizeAndDigest)
    }

    // MARK: - What is asked

    /// What to ask for when everything before `offset` is there.
    func question(from offset: Int64) -> FetchQuestion {
        let range = doubtsEnd && offset == end ? ByteRange(start: offset, end: offset + 1) : range(from: offset)
        let resumes = offset > lease.start
        return FetchQuestion(
            range: range,
            conditional: range != nil && !asksUnconditionally && (isSettled || resumes) && condition != nil,
            // A resumed chunk must match what is known as strictly as a planned one.
            planned: isSettled || resumes,
            known: known,
            expectedSize: lease.expectedSize,
            expectsDigest: digests.tellsContentsApart,
            rule: lease.policy?.validators ?? .strict,
            mayChunkUnvalidated: lease.policy?.chunksWithoutValidator == true,
            isOtherMirror: lease.isOtherMirror == true,
            claimedSize: claimedSize,
            earlier: earlier,
            source: source.ordinal,
            isLastTry: lease.isLastTry == true,
            decodes: lease.options?.decode == true,
            expectedContentType: lease.contentType,
            held: held?.representation.absenceCondition == nil ? nil : held?.representation,
            kept: ladder.rung != .chunks && goesOn ? offset : 0
        )
    }

    /// The validator for If-Range: a strong tag, or else a date that was old enough when it was stated (rows 8, 9). `nil` if the server that answers may
    /// rightly state another validator: it would send the whole content instead of the range.
    private var condition: String? {
        guard !goesByDigest else { return nil }
        if let etag = known.strongETag { return etag }
        // The dates of two servers say nothing about each other.
        return known.isDateStrong == true && lease.isOtherMirror != true ? known.lastModified : nil
    }

    private func range(from offset: Int64) -> ByteRange? {
        let last: Int64
        switch ladder.rung {
        case .whole:
            guard asksForRest, goesOn, offset > lease.start, let size = known.size, offset < size else { return nil }
            return ByteRange(start: offset, end: size)
        case .stream: return ByteRange(start: offset, end: Limits.fileSize.bytes)
        case .chunks:
            guard let end = end ?? lease.end else { return nil }
            last = offset == lease.start ? max(end, lease.reach ?? end) : end
        }
        // A file that is known to fit is asked for plainly: no server gets that wrong (row 19).
        if offset == 0, isWholeFile { return nil }
        if offset == 0, !isSettled, let expected = lease.expectedSize, expected <= last { return nil }
        return ByteRange(start: offset, end: asksForAll && !isSettled ? Limits.fileSize.bytes : last)
    }

    /// The request for a question, as the options want it sent.
    ///
    /// - Parameter isPaced: whether the request keeps to a byte budget. Then it has a connection of its own, unless the options say otherwise:
    ///   a stream that is not read from holds up all others of its connection.
    func request(
        _ question: FetchQuestion,
        _ settings: RequestSettings,
        fellBack: Bool = false,
        refusesHTTP1: Bool = false,
        isPaced: Bool = false
    ) -> TransferRequest {
        var request = settings.request(
            isFirst: !isSettled && !isPaced, fellBack: fellBack || ladder.isHTTP1, refusesHTTP1: refusesHTTP1)
        if let range = question.range, !range.isEmpty {
            request.range = RangeSpec(
                first: range.start, last: range.end == Limits.fileSize.bytes ? nil : range.end - 1)
        }
        shortenPatience(&request)
        request.isAlone = manner.isAlone
        guard settings.isHTTP else { return request }
        if manner.saysIdentity { request.headers.append("Accept-Encoding", "identity") }
        // After a change or a wrong digest, caches on the way are no longer believed (row 29).
        if lease.version > 1 { request.headers.append("Cache-Control", "no-cache") }
        if question.conditional, let condition { request.headers.append("If-Range", condition) }
        if let field = question.held?.absenceCondition { request.headers.append(field.name, field.value) }
        return request
    }

    /// Shortens the patience to a fraction if another source may answer, and to half of that if a running request brings the chunk too. An origin that was
    /// silent lately gets only the time that a healthy origin needs.
    private func shortenPatience(_ request: inout TransferRequest) {
        guard lease.mayMoveOn == true || lease.reach != nil else { return }
        request.firstByteTimeout =
            request.firstByteTimeout
            / (isSilent ? 60 : lease.reach != nil ? 2 * Self.shortPatience : Self.shortPatience)
        if isSilent { request.connectTimeout = min(request.connectTimeout, request.firstByteTimeout) }
    }

    /// The move after an answer that contradicted the way in which the source was asked, or that refused it.
    ///
    /// - Parameters:
    ///   - question: what was asked.
    ///   - isShared: whether other transfers run at the origin.
    ///   - isHTTP2: whether HTTP/2 was spoken.
    mutating func move(
        after contradiction: Ladder.Contradiction, to question: FetchQuestion, isShared: Bool, isHTTP2: Bool
    ) -> Ladder.Move {
        if ladder.rung == .whole, question.range != nil, contradiction.mayBeForRest {
            asksForRest = false
            return .ask
        }
        let situation = Ladder.Situation(
            hasRange: question.range != nil,
            isUntouched: isUntouched,
            hasServedRange: isSettled || lease.resume.offset > lease.start,
            isShared: isShared && turns.isLimit != false,
            isHTTP2: isHTTP2,
            asksForAll: asksForAll,
            mayBeSilent: !isSilent && lease.mayMoveOn != true,
            looks: lease.looks
        )
        let rung = ladder.rung
        let move = ladder.move(after: contradiction, in: situation)
        // The try with a new connection was made for another question.
        if ladder.rung != rung, ladder.rung == .whole { doubtsKept = true }
        // A question without the condition of a held file has one reason less to be contradicted.
        if case .ask = move, situation.isUntouched { askPlainly() }
        return move
    }

    /// Whether nothing of the content version is stored or known anywhere.
    var isUntouched: Bool {
        !lease.planned && !isSettled && learned == nil && lease.resume.offset == lease.start
    }

    /// Takes in the result of a look; returns the move that follows.
    mutating func looked(refused: String?) -> Ladder.Move { ladder.looked(refused: refused) }

    /// Asks without If-Range from now on.
    mutating func askUnconditionally() {
        asksUnconditionally = true
    }

    /// Asks for the content itself from now on, even if the sink has a file that may be the same.
    mutating func askPlainly() {
        held = nil
        learned = nil
    }

    // MARK: - What is settled

    /// Learns the content without a body: it is that of the held file.
    mutating func settleHeld(effectiveURL: String?) {
        guard let held else { return }
        learned = Report.Learned(
            representation: held.representation, rung: .whole, effectiveURL: effectiveURL ?? held.effectiveURL,
            source: source.ordinal)
    }

    /// Takes in a body that was accepted. Returns the most bytes of it to take; `nil` for all.
    ///
    /// - Parameter suggestedName: the name that the origin gives the file, if the group asks for it (row 34).
    mutating func settle(
        _ body: AcceptedBody, status: Int, effectiveURL: String, suggestedName: String? = nil
    ) -> Int64? {
        if !isSettled {
            var taught = Report.Learned(
                representation: body.representation, rung: body.isSplittable ? ladder.rung : .whole,
                effectiveURL: effectiveURL, source: source.ordinal)
            taught.suggestedName = suggestedName
            if asksForAll, taught.rung == .chunks { taught.askedForAll = true }
            learned = taught
        }
        isCoded = isCoded || body.isCoded
        known = lease.isOtherMirror == true ? known : known.updated(by: body.representation)
        let endsWithPart = ladder.rung == .chunks && body.representation.size == lease.end && !asksForAll
        doubtsEnd =
            status == 206 && !isSettled && (endsWithPart || body.mayBePart) && lease.expectedSize == nil
            && digests.all.isEmpty
        // A body that comes in no range is the whole content, whatever the lease was for.
        let size = known.size ?? lease.expectedSize
        if status == 206 {
            end = min(ladder.rung == .chunks && !asksForAll ? lease.end ?? .max : .max, size ?? .max)
            isWholeFile = lease.start == 0 && end == size
        } else {
            end = size
            isWholeFile = true
        }
        isSettled = isSettled || status == 206
        // The bytes behind the chunk may be given back to this lease while it runs (`ChunkBound`).
        let most = end.map { max($0, lease.reach ?? $0) - body.offset }
        return body.count.map { min($0, most ?? .max) } ?? most
    }

    /// Whether the lease is for as much of the file as the answer tells of: its request may be the only one that is served (row 22).
    var asksForAll: Bool { lease.asksForAll == true }

    /// Moves the end of the chunk to `agreed`: the rest of the file is for other leases.
    mutating func setEnd(to agreed: Int64) {
        end = agreed
        isWholeFile = false
    }

    /// Takes in a whole read whose end is not proved. Returns whether the read before was the same, which proves it; `nil` after too many.
    mutating func confirm(_ read: DurablePrefix) -> Bool? {
        let longest = max(unproven?.longest ?? 0, read.offset)
        // Two equal reads of less than half the longest read are something in the place of the file.
        if unproven?.read == read, read.offset >= longest / 2 {
            ended(at: read.offset)
            return true
        }
        let count = (unproven?.count ?? 0) + 1
        unproven = (read, count, longest)
        return count < Self.mostReads ? false : nil
    }

    /// Whether the body has to be read again to prove its end.
    var isProvingEnd: Bool { unproven != nil }

    /// The most whole reads of which no two in a row agree; after them, the content of the file is undecided.
    private static let mostReads = 8

    /// The pause before another read: two reads that differ may be due to an outage, or to too much at once, which passes.
    var pauseBeforeReading: Duration {
        Backoff(first: .milliseconds(250), longest: .seconds(2), jitter: 0).bound(failures: (unproven?.count ?? 0) - 1)
    }

    /// The source is asked plainly from now on, within this lease.
    mutating func askWhole(_ reason: String) {
        ladder.leaveForWhole(reason)
    }

    /// Counts answers that brought few bytes; returns whether these were too many in a row.
    mutating func noteAnswer(of count: Int64, to question: FetchQuestion) -> Bool {
        let isSmall = count < Self.smallAnswer && count < question.range?.count ?? 0
        smallAnswers = isSmall ? smallAnswers + 1 : 0
        return smallAnswers >= Self.mostSmallAnswers
    }

    /// An answer of fewer bytes than this counts as small.
    static let smallAnswer: Int64 = 64 << 10
    private static let mostSmallAnswers = 64

    /// The stream ended at the end of the file, or the origin has nothing beyond `offset` (row 16).
    mutating func ended(at offset: Int64) {
        end = offset
        known.size = offset
        learned?.representation.size = offset
        isWholeFile = lease.start == 0
    }
}
