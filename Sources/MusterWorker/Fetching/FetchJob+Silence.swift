import MusterAPI
import MusterCore
import MusterCurl

/// What a job does about a request that is silent while its origin answers others (adr/0054).
extension FetchJob {
    /// How often a silent request is looked at.
    private static let timeToLook: Duration = .seconds(2)

    /// Divides the time for the first byte, so that a silence is looked at several times within it. Returns how many times.
    static func dividePatience(of request: inout TransferRequest) -> Int {
        let times = Int(request.firstByteTimeout / timeToLook)
        guard times > 1, request.url.hasPrefix("http") else { return 1 }
        request.firstByteTimeout = request.firstByteTimeout / times
        return times
    }

    /// Whether a silent request is given up, and made once more: the origin has answered others that were made as late, four times as fast at least, and
    /// serves a URL more than once. This is done once within a lease, with one request of the origin at a time, unless silence is known to mean too much at
    /// once. With a short patience it is done only if that is known; and if another source is left, that one is asked.
    func isOvertaken(_ visit: OriginConduct.Visit, _ plan: FetchPlan, _ looks: Int) -> Bool {
        let isLimit = context.witnesses.isSilentAtLimit(origin)
        return (isLimit || looks > 1 && !plan.arrival.wasSilent) && lease.mayMoveOn != true && plan.isUntouched
            && context.witnesses.servesAgain(origin) && context.conduct.answersOthers(than: visit, of: origin)
            && (isLimit || context.conduct.mayRepeat(origin))
    }

    /// The step after a request that was given up because others were answered; `nil` after all other endings. The file is asked for once more, after the
    /// requests before it. Where silence is known to mean too much at once, the lease is given back for that.
    func stepAfterSilence(_ ending: FetchTransfer.Ending, _ plan: inout FetchPlan) -> Step? {
        guard ending.wasOvertaken, control.wish == .work else { return nil }
        plan.arrival.wasSilent = true
        if let step = stepAtSilentLimit(&plan) { return step }
        context.conduct.refusesTogether(origin)
        return .again
    }

    /// The step before a request is made once more, if another one has shown meanwhile that silence means too much at once.
    func stepAtSilentLimit(_ plan: inout FetchPlan) -> Step? {
        guard plan.arrival.wasSilent, plan.isUntouched, context.witnesses.isSilentAtLimit(origin) else { return nil }
        plan.turns = .over(isLimit: true)
        return .failed(.timeout, "no answer, while the origin answers other requests", retryAfter: nil)
    }

    /// Notes that a file is served that was silent before. If its answer came at once this time, the silence was due to a limit.
    func noteSilentLimit(_ plan: FetchPlan, _ visit: OriginConduct.Visit) {
        guard let address, plan.arrival.wasSilent,
            context.conduct.now() - visit.begin < OriginConduct.timeToBeOvertaken
        else { return }
        context.witnesses.told(isLimit: true, address, status: OriginWitnesses.silence)
    }
}
