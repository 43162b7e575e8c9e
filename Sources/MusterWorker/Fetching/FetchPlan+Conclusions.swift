import MusterAPI
import MusterCore
import MusterCurl

/// Conclusions from what is settled.
extension FetchPlan {
    /// Whether other leases may fetch the tail of the chunk from now on.
    var isDivisible: Bool { isSettled && (asksForAll ? learned?.askedForAll == true : !isWholeFile) }

    /// Whether a plain GET that was cut can be resumed behind the bytes that came: the content has a size, and a validator or a digest that identifies it.
    /// `goes_on` in the database computes the same. A server of ftp that is asked for a whole file has shown that it can't begin elsewhere.
    var goesOn: Bool {
        known.size != nil && (known.tellsVersions || digests.tellsContentsApart || known.statesDigest)
            && lease.start == 0 && lease.isOtherMirror != true && !isCoded && !source.url.lowercased().hasPrefix("ftp")
    }

    /// Whether a predecessor's bytes may be resumed: only if a response can be shown to have the same content.
    var mayResume: Bool {
        guard lease.resume.offset > lease.start else { return false }
        guard lease.rung != .whole else { return goesOn }
        return lease.planned || known.tellsVersions || (known.size != nil && !digests.all.isEmpty)
    }

    /// The question that shows whether a plain GET is served and brings the known content.
    var look: FetchQuestion {
        var question = question(from: 0)
        question.range = nil
        question.conditional = false
        question.held = nil
        return question
    }

    /// What is reported of the content before all of it has come. A coded body can't be resumed: its validators may be those of the uncoded content.
    var learnedSoFar: Report.Learned? {
        guard isCoded, var learned else { return learned }
        learned.representation = learned.representation.weakened
        return learned
    }

    /// Whether the name of the file is taken from the origin, and this lease is the one that learns it.
    var wantsName: Bool { lease.policy?.names == .suggested && !isSettled }

    /// Whether what was learned has to be reported at once: the file may have more than the lease covers, or gets another name.
    var isWorthTellingAtOnce: Bool {
        guard let learned else { return false }
        guard learned.suggestedName == nil, let size = learned.representation.size, let bound = lease.end else {
            return true
        }
        return size > bound
    }

    /// Whether the file is put in place within this lease. The coordinator has to agree to a name that comes from the origin first.
    var isPlacedHere: Bool { isWholeFile && learned?.suggestedName == nil }

    /// Whether an answer from this URL can confirm that the held file still is the content.
    func canVouch(_ effectiveURL: String) -> Bool {
        // A tag is valid only at the place that stated it. The query is left out: it may hold a signature, which differs
        // each time.
        guard let known = held?.effectiveURL else { return true }
        return Self.place(known) == Self.place(effectiveURL)
    }

    private static func place(_ url: String) -> Substring {
        url.prefix { $0 != "?" && $0 != "#" }
    }

    /// The digests to compute of a body that begins at `offset`, as it arrives: all that are needed if the file is put in place here. Small files are hashed
    /// when they are put in place, many at a time.
    func digestsOnTheWay(from offset: Int64) -> Set<DigestAlgorithm> {
        guard isPlacedHere, offset == 0, known.size ?? .max > SinkStation.batchedBytes else { return [] }
        return Set(digests.all.map(\.algorithm) + (lease.policy?.computeDigests ?? []))
    }

    /// The limit on a body's speed, from `offset` on. It covers a shorter time if there is another way to go on from the byte where the body ends, or if the
    /// body's speed is doubted. `nil` for the limit of the request.
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

    /// The bytes per second that a body from `offset` on has to bring until it has kept its pace. `nil` if a running request would bring the chunk no sooner
    /// (`LeaseDocument.pace`), or if a byte budget sets the speed.
    func pace(from offset: Int64) -> Int64? {
        let isFree = !keepsToBudget && lease.options?.lowSpeedBytesPerSecond != 0
        guard isFree, offset == lease.start, ladder.rung == .chunks else { return nil }
        return lease.pace.flatMap { $0 > 0 ? $0 : nil }
    }

    /// The usual patience is divided by this where there is another way to go on.
    static let shortPatience = 6

    /// The seconds over which a body has to keep its pace: a fraction of the usual patience.
    var secondsOfPace: Int64 {
        max(1, (lease.options?.lowSpeedSeconds ?? FetchOptions.usualPatience.lowSpeedSeconds) / Int64(Self.timesOfPace))
    }

    /// How many times as long a silent body is tolerated after it has kept its pace.
    static let timesOfPace = 15

    /// The offset at which the chunk has kept its pace: after two seconds of the request before it, which brings ten times as much (`request_beside`), or
    /// after a quarter of the chunk. A quarter of a small chunk is not enough: some origins send as much before they fall silent.
    var endOfPace: Int64 {
        let size = lease.end.map { $0 - lease.start } ?? .max
        return lease.start + min((pace(from: lease.start) ?? 0) * 20, max(size / 4, min(size, Self.leastShown)))
    }

    /// The bytes that show that a chunk keeps its pace, at least.
    private static let leastShown: Int64 = 256 << 10

    /// Whether the chunk has kept its pace. Before that, nothing of it counts as durable, so that it can be given back
    /// (adr/0037).
    func hasKeptPace(at offset: Int64) -> Bool { offset >= endOfPace }

    /// Whether the next request may be the only one that is served. Then it gets more than the usual patience, unless the options set one.
    var mayBeOnly: Bool {
        asksForAll && answer == nil && lease.mayMoveOn != true && lease.options?.firstByteTimeoutSeconds == nil
            && lease.options?.lowSpeedSeconds == nil
    }

    /// How many times the usual patience such a request gets, before its head or in its body.
    static func timesOfOnly(beforeHead: Bool) -> Int {
        let usual = FetchOptions.usualPatience
        return Int(FetchOptions.mostPatience / (beforeHead ? usual.firstByteSeconds : usual.lowSpeedSeconds))
    }

    /// The bytes per second below which a part is doubted (`try_slow_origins` has the same), and the least bytes for which that is worthwhile.
    private static let doubtfulSpeed: Int64 = 256 << 10
    private static let leastToDoubt: Int64 = 1 << 20

    /// Why the bytes of a body that broke off are lost, as a text that follows its failure; `nil` if the body is resumed, or if nothing came.
    func loss(at offset: Int64) -> String? {
        guard learned?.rung == .whole, offset > lease.start, !goesOn else { return nil }
        return ", and what came can't be gone on with"
            + (known.tellsVersions || !digests.all.isEmpty ? "" : ": it has no validator")
    }

    /// How many bytes of a look show that a plain GET is served: the whole file if it is smaller.
    var bytesToSee: Int64 { min(ladder.bytesToSee, known.size ?? .max) }

    /// Whether a body is complete wherever it ends: a digest decides, or the group accepts unframed bodies.
    var believesAnyEnd: Bool { !digests.all.isEmpty || lease.policy?.acceptUnframed == true }

    /// What was seen of the file before: in versions that were given up, in a file that is there, or in reads of this lease whose ends are not proved. Later
    /// bodies are measured by it (row 27).
    var earlier: EarlierVersion? {
        let before = lease.earlier ?? EarlierVersion(of: lease.have)
        guard let longest = unproven?.longest, before?.size == nil else { return before }
        var measure =
            before ?? EarlierVersion(source: source.ordinal, etag: known.etag, lastModified: known.lastModified)
        measure.bytes = max(measure.bytes ?? 0, longest)
        return measure
    }

    /// Why a body that ended at `offset`, and whose head did not state the end, may be something in the place of the file (row 27); `nil` if it may not.
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
