/// Whether a small body that has come with status 200 is the file, or stands in its place (range contract, rows 24 and 27; adr/0036). Its worker asks for a
/// file that the origin has served before, and then for the same file again, in turns, as this says, and tells what came.
public struct Examination: Sendable {
    /// How the body came that is examined.
    public struct Body: Sendable {
        /// How its answer looks.
        public var look: Appearance
        /// Whether the path ends as those of files do that are no text.
        public var namesNoText: Bool
        /// Whether others were asked for at the origin meanwhile.
        public var isShared: Bool
        /// Whether a part was asked for: some origins send nothing, or a page, to such requests alone.
        public var answersRange: Bool
        /// Whether the body before, in answer to the same request, was another one.
        public var isSecond: Bool
        /// Whether a request with a Range, and maybe no other one, was redirected to it.
        public var isElsewhere: Bool
        /// Whether another source has not been tried.
        public var mayMoveOn: Bool
        /// Whether the same has come for another file too.
        public var isRepeated: Bool

        /// A body that came alone, in answer to a request for the whole.
        public init(
            look: Appearance, namesNoText: Bool = false, isShared: Bool = false, answersRange: Bool = false,
            isSecond: Bool = false, isElsewhere: Bool = false, mayMoveOn: Bool = false, isRepeated: Bool = false
        ) {
            self.look = look
            self.namesNoText = namesNoText
            self.isShared = isShared
            self.answersRange = answersRange
            self.isSecond = isSecond
            self.isElsewhere = isElsewhere
            self.mayMoveOn = mayMoveOn
            self.isRepeated = isRepeated
        }

        /// Whether it is a text where the path names none.
        fileprivate var isNotice: Bool { look.mayBeNotice && namesNoText }
        /// Whether it is a text, whatever the path names, that states nothing of itself.
        fileprivate var isUnmarked: Bool { look.mayBeNotice && !look.hasValidator }
        /// Whether it is one where the path names none.
        fileprivate var isPage: Bool { namesNoText && isUnmarked }
    }

    /// What is asked for next.
    public enum Step: Sendable, Hashable {
        /// A file that was served before: the turn of this number.
        case askForWitness(turn: Int)
        /// The same file, plainly.
        case askAgain
        /// Nothing.
        case over(Verdict)
    }

    /// What the body is.
    public enum Verdict: Sendable, Hashable {
        /// The file; `isTold` if others were served in turns with it.
        case file(isTold: Bool)
        /// What tells of a limit; the text says how that shows.
        case limit(String)
        /// Perhaps none of the file; the text says why.
        case unclear(String)
        /// Another one than what comes to a plain request, which is rather the file.
        case another
    }

    /// What an answer to the request for a file says that was served before.
    public enum Testimony: Sendable, CaseIterable {
        /// It comes.
        case served
        /// It is refused, or something else comes in its place, while others are served.
        case refused
        /// Something else comes in its place, which says no more.
        case other
        /// Nothing is known of it.
        case nothing
    }

    /// What an answer to the same request once more says.
    public enum Second: Sendable, CaseIterable {
        /// The same has come.
        case same
        /// Something else has come that looks so: what is made anew for each request is another one each time.
        case alike
        /// Something else has come, which is the file rather than what came.
        case better
        /// Nothing has come that is the file rather than what came: the URL may work once.
        case none
        /// Nothing, or not all of it in time, and no head that tells: the origin may be at its limit, slow or away.
        case unheard
    }

    private let body: Body
    private var turn = 0
    /// Whether a file that was served before has come once more.
    public private(set) var hasWitness = false
    /// Whether something else came for a file that was served before, which says no more.
    private var isLikeOthers = false
    /// Whether another body of the same look has come each time, which says nothing of the next file that looks so.
    public private(set) var isVaried = false

    /// The examination of a body, before anything was asked for.
    public init(of body: Body) {
        self.body = body
    }

    /// Whether a body like this is examined at all where nobody else can tell.
    public var isAskedAgain: Bool {
        body.isShared || body.isNotice && !body.look.hasDate || body.answersRange && body.look.size == 0
            || body.isElsewhere
    }

    /// Whether its look is that of a page, so that one such file tells nothing of others.
    public var mayBePage: Bool { body.isPage }

    /// Whether it is a page, or a text that states nothing of itself and came beside others.
    private var mayBeLimit: Bool { body.isPage || body.isShared && body.isUnmarked }

    /// What is asked for first.
    public func begin() -> Step {
        guard body.mayMoveOn, body.isNotice || body.look.size == 0 || body.isRepeated else {
            return .askForWitness(turn: 0)
        }
        return .over(.unclear(", where another source may have it"))
    }

    /// What follows when that is known of a file that was served before.
    public mutating func hear(_ testimony: Testimony) -> Step {
        switch testimony {
        case .refused: return .over(.limit(", and of one that was served before"))
        case .other:
            // Their URLs may work once, and this one too.
            isLikeOthers = true
            return .askAgain
        case .served: hasWitness = true
        case .nothing: hasWitness = false
        }
        return hasWitness || isAskedAgain ? .askAgain : .over(.file(isTold: false))
    }

    /// What follows when the same was asked for once more.
    ///
    /// - Parameters:
    ///   - isAlone: whether nothing else was asked for at the origin this time, and the body has come for this file only.
    ///   - turns: how many turns tell.
    ///   - leaves: whether the file is left for another try where nobody can tell.
    public mutating func hear(_ second: Second, isAlone: Bool, turns: Int, leaves: () -> Bool) -> Step {
        switch second {
        case .same where isLikeOthers, .alike where isLikeOthers: return .over(.unclear(", as of others"))
        case .same:
            // One that comes again and again, and for several files, may tell of a limit for so many seconds.
            let mayBeLimit = mayBeLimit || body.isShared && body.isNotice
            let isUntold = mayBeLimit && !hasWitness && !(body.isShared && isAlone)
            if isUntold, leaves() { return .over(.unclear("")) }
        case .better where body.isElsewhere && !body.isSecond: return .over(.another)
        case .better where body.isShared: return .over(.limit(", which comes when less is asked for"))
        case .better: return .over(body.isSecond ? .unclear(", which comes at times") : .another)
        case .alike:
            // A page with an advertisement may tell of a limit, whatever else is served.
            isVaried = true
            if mayBeLimit, leaves() { return .over(.unclear("")) }
        case .unheard:
            let mayBeLimit = mayBeLimit || body.isShared && (body.isNotice || body.look.size == 0)
            if mayBeLimit, leaves() { return .over(.unclear(", and no answer in time when asked for again")) }
            hasWitness = false
        case .none: hasWitness = false
        }
        turn += 1
        guard hasWitness, body.isShared, turn < turns else { return .over(.file(isTold: hasWitness)) }
        return .askForWitness(turn: turn)
    }
}
