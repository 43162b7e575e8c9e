import MusterAPI
import MusterCore
import MusterCurl

/// What follows from what is settled.
extension FetchPlan {
    /// Whether others may fetch what is beyond some byte of the chunk from now on.
    var isDivisible: Bool { isSettled && (asksForAll ? learned?.askedForAll == true : !isWholeFile) }

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
        let over = limit.over / Self.shortPatience
        if doubtsSpeed, let end, end - offset >= Self.leastToDoubt {
            return (LowSpeedLimit(bytesPerSecond: max(limit.bytesPerSecond, Self.doubtfulSpeed), over: over), true)
        }
        guard lease.mayMoveOn == true && learned?.rung != .whole || ladder.isServedPlainly else { return nil }
        return (LowSpeedLimit(bytesPerSecond: limit.bytesPerSecond, over: over), false)
    }

    /// Whether the next request may be the only one that is served: it is worth more than the usual patience, unless the options name another one.
    var mayBeOnly: Bool {
        asksForAll && answer == nil && lease.options?.firstByteTimeoutSeconds == nil
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
        guard learned?.rung == .whole, offset > lease.start else { return nil }
        return ", and what came can't be gone on with"
            + (known.tellsVersions || !digests.all.isEmpty ? "" : ": it has no validator")
    }

    /// How many bytes of a look show that a plain GET is served, or all if there are fewer.
    var bytesToSee: Int64 { min(ladder.bytesToSee, known.size ?? .max) }

    /// Whether a body is complete wherever it ends: a digest tells, or the group takes what it gets.
    var believesAnyEnd: Bool { !digests.all.isEmpty || lease.policy?.acceptUnframed == true }

    /// Whether a whole body of no stated length is exactly as long as the part that was asked for: then it may be a part (row 1).
    func mayBePart(_ ending: FetchTransfer.Ending, of question: FetchQuestion, count: Int64) -> Bool {
        guard case .completed(_, .framed) = ending.outcome, end == nil, let range = question.range else { return false }
        return ending.head?.status != 206 && range.count == count
    }
}
