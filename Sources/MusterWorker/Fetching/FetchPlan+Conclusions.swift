import MusterAPI
import MusterCore
import MusterCurl

/// What follows from what is settled.
extension FetchPlan {
    /// Whether others may fetch what is beyond some byte of the chunk from now on.
    var isDivisible: Bool { isSettled && (asksForAll ? learned?.askedForAll == true : !isWholeFile) }

    /// Whether a plain GET that is cut is gone on with behind the bytes that came: the content has a size, and a validator or a digest that tells it from any
    /// other. `goes_on` in the database has the same. A server of ftp that is asked for a whole file has shown that it can't begin elsewhere.
    var goesOn: Bool {
        known.size != nil && (known.tellsVersions || digests.tellsContentsApart || known.statesDigest)
            && lease.start == 0 && lease.isOtherMirror != true && !isCoded && !source.url.lowercased().hasPrefix("ftp")
    }

    /// Whether what a predecessor left may be gone on with: only if a response can be told to be of the same content.
    var mayResume: Bool {
        guard lease.resume.offset > lease.start else { return false }
        guard lease.rung != .whole else { return goesOn }
        return lease.planned || known.tellsVersions || (known.size != nil && !digests.all.isEmpty)
    }

    /// What is asked to see whether a plain GET is served that brings the content which is known.
    var look: FetchQuestion {
        var question = question(from: 0)
        question.range = nil
        question.conditional = false
        question.held = nil
        return question
    }

    /// What is told of the content before all of it has come. What came coded can't be gone on with: its validators may be those of the content as it is.
    var learnedSoFar: Report.Learned? {
        guard isCoded, var learned else { return learned }
        learned.representation = learned.representation.weakened
        return learned
    }

    /// Whether the name of the file is taken from the origin, and this lease is the one that learns it.
    var wantsName: Bool { lease.policy?.names == .suggested && !isSettled }

    /// Whether the coordinator has to hear at once what was learned: there may be more than the lease covers, or the file gets another name.
    var isWorthTellingAtOnce: Bool {
        guard let learned else { return false }
        guard learned.suggestedName == nil, let size = learned.representation.size, let bound = lease.end else {
            return true
        }
        return size > bound
    }

    /// Whether the file is put in place within this lease. The coordinator has to agree to a name that comes from the origin first.
    var isPlacedHere: Bool { isWholeFile && learned?.suggestedName == nil }

    /// Whether an answer that came from there can say of the file that it still is the content.
    func canVouch(_ effectiveURL: String) -> Bool {
        // A tag means something at the place alone where it was stated. Queries hold signatures, which differ each time.
        guard let known = held?.effectiveURL else { return true }
        return Self.place(known) == Self.place(effectiveURL)
    }

    private static func place(_ url: String) -> Substring {
        url.prefix { $0 != "?" && $0 != "#" }
    }

    /// The digests to compute of a body that begins at `offset`, as it comes: all that will be needed, if it is put in place here. Small
    /// files are hashed when that is done, many at a time.
    func digestsOnTheWay(from offset: Int64) -> Set<DigestAlgorithm> {
        guard isPlacedHere, offset == 0, known.size ?? .max > SinkStation.batchedBytes else { return [] }
        return Set(digests.all.map(\.algorithm) + (lease.policy?.computeDigests ?? []))
    }

    /// The limit on a body's speed, from `offset` on: over a shorter time where there is another way to go on from the byte that it ends at, or where its
    /// speed is doubted. `nil` for the one of the request.
    func patience(_ limit: LowSpeedLimit?, from offset: Int64) -> (limit: LowSpeedLimit, isDoubt: Bool)? {
        guard let limit, ladder.rung != .whole else { return nil }
        if let pace = pace(from: offset) {
            return (
                LowSpeedLimit(bytesPerSecond: max(limit.bytesPerSecond, pace), over: .seconds(secondsOfPace)), false
            )
        }
        let over = limit.over / Self.shortPatience
        if doubtsSpeed, let end, end - offset >= Self.leastToDoubt {
            return (LowSpeedLimit(bytesPerSecond: max(limit.bytesPerSecond, Self.doubtfulSpeed), over: over), true)
        }
        guard lease.mayMoveOn == true && learned?.rung != .whole || ladder.isServedPlainly else { return nil }
        return (LowSpeedLimit(bytesPerSecond: limit.bytesPerSecond, over: over), false)
    }

    /// The bytes per second that a body has to bring which begins at `offset`, until it has shown that it does; `nil` where a request that runs would bring it
    /// no sooner (`LeaseDocument.pace`), or a byte budget sets the speed.
    func pace(from offset: Int64) -> Int64? {
        let isFree = !keepsToBudget && lease.options?.lowSpeedBytesPerSecond != 0
        guard isFree, offset == lease.start, ladder.rung == .chunks else { return nil }
        return lease.pace.flatMap { $0 > 0 ? $0 : nil }
    }

    /// The part of the patience that is due where there is another way to go on.
    static let shortPatience = 6

    /// The seconds over which a body has to keep its pace: a part of the usual patience.
    var secondsOfPace: Int64 {
        max(1, (lease.options?.lowSpeedSeconds ?? FetchOptions.usualPatience.lowSpeedSeconds) / Int64(Self.timesOfPace))
    }

    /// For how many times as long a body is borne that is silent after it has kept its pace.
    static let timesOfPace = 15

    /// How far the chunk has come when it has kept its pace: that is two seconds of the request before it, which brings ten times as much (`request_beside`), or
    /// a quarter of the chunk.
    var endOfPace: Int64 {
        let most = lease.end.map { ($0 - lease.start) / 4 } ?? .max
        return lease.start + min((pace(from: lease.start) ?? 0) * 20, most)
    }

    /// Whether it has. Before that nothing of the chunk counts as durable, so that it can be given back (adr/0037).
    func hasKeptPace(at offset: Int64) -> Bool { offset >= endOfPace }

    /// Whether the next request may be the only one that is served: it is worth more than the usual patience, unless the options name another one.
    var mayBeOnly: Bool {
        asksForAll && answer == nil && lease.mayMoveOn != true && lease.options?.firstByteTimeoutSeconds == nil
            && lease.options?.lowSpeedSeconds == nil
    }

    /// How many times the usual patience such a request has before its head, or in its body.
    static func timesOfOnly(beforeHead: Bool) -> Int {
        let usual = FetchOptions.usualPatience
        return Int(FetchOptions.mostPatience / (beforeHead ? usual.firstByteSeconds : usual.lowSpeedSeconds))
    }

    /// Bytes per second that a part is doubted below (`try_slow_origins` has the same), and the bytes from which on that is worth it.
    private static let doubtfulSpeed: Int64 = 256 << 10
    private static let leastToDoubt: Int64 = 1 << 20

    /// Why what has come of a body is lost that broke off, in words that follow its failure; `nil` where it is gone on with, or nothing came.
    func loss(at offset: Int64) -> String? {
        guard learned?.rung == .whole, offset > lease.start, !goesOn else { return nil }
        return ", and what came can't be gone on with"
            + (known.tellsVersions || !digests.all.isEmpty ? "" : ": it has no validator")
    }

    /// How many bytes of a look show that a plain GET is served, or all if there are fewer.
    var bytesToSee: Int64 { min(ladder.bytesToSee, known.size ?? .max) }

    /// Whether a body is complete wherever it ends: a digest tells, or the group takes what it gets.
    var believesAnyEnd: Bool { !digests.all.isEmpty || lease.policy?.acceptUnframed == true }

    /// What has been shown of the file before, by versions that were given up, by a file that is there, or by reads of this lease whose ends nothing proved: the
    /// measure of what comes in their place (row 27).
    var earlier: EarlierVersion? {
        let before = lease.earlier ?? EarlierVersion(of: lease.have)
        guard let longest = unproven?.longest, before?.size == nil else { return before }
        var measure =
            before ?? EarlierVersion(source: source.ordinal, etag: known.etag, lastModified: known.lastModified)
        measure.bytes = max(measure.bytes ?? 0, longest)
        return measure
    }

    /// Why a body may be something in the place of the file whose end, at `offset`, its head has not told (row 27); `nil` where it may not.
    func doubtfulEnd(at offset: Int64) -> String? {
        guard end == nil, lease.start == 0, digests.all.isEmpty,
            case .refuse(_, let detail, _) = ResponseVerdict.doubt(
                offset, of: known, isPage: arrival.look?.isHTML == true, question(from: 0))
        else { return nil }
        return detail
    }

    /// Whether a whole body of no stated length is exactly as long as the part that was asked for: then it may be a part (row 1).
    func mayBePart(_ ending: FetchTransfer.Ending, of question: FetchQuestion, count: Int64) -> Bool {
        guard case .completed(_, .framed) = ending.outcome, end == nil, let range = question.range else { return false }
        return ending.head?.status != 206 && range.count == count
    }
}
