/// Decides whether a small body that came with status 200 is the file, or something in its place (range contract, rows 24 and 27;
/// adr/0036). The worker asks in turns for a witness, which is a file that the origin has served before, and for the same file again. This
/// type says what to ask for next, and the worker feeds back the answers.
public struct Examination: Sendable {
    /// How the examined body came.
    public struct Body: Sendable {
        /// The look of its answer.
        public var look: Appearance
        /// Whether the path's ending is that of files that are not text.
        public var namesNoText: Bool
        /// Whether other files were asked for at the origin at the same time.
        public var isShared: Bool
        /// Whether a part was asked for: some origins send an empty body or a page to such requests alone.
        public var answersRange: Bool
        /// Whether an earlier answer to the same request had another body.
        public var isSecond: Bool
        /// Whether a request with a Range was redirected to the body; a plain request may not be.
        public var isElsewhere: Bool
        /// Whether another source is still untried.
        public var mayMoveOn: Bool
        /// Whether the same body has come for another file too.
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

        /// Whether the body is a text, although the path's ending is not a text's.
        fileprivate var isNotice: Bool { look.mayBeNotice && namesNoText }
        /// Whether the body is a text without a validator, whatever the path's ending.
        fileprivate var isUnmarked: Bool { look.mayBeNotice && !look.hasValidator }
        /// Whether the body is a text without a validator, and the path's ending is not a text's.
        fileprivate var isPage: Bool { namesNoText && isUnmarked }
    }

    /// What to ask for next.
    public enum Step: Sendable, Hashable {
        /// A file that was served before (the witness), in the turn with this number.
        case askForWitness(turn: Int)
        /// The same file, plainly.
        case askAgain
        /// Nothing: the examination is over.
        case over(Verdict)
    }

    /// What the body is.
    public enum Verdict: Sendable, Hashable {
        /// The file; `isTold` if a witness was served in turns with it.
        case file(isTold: Bool)
        /// The notice of a limit; the text gives the evidence.
        case limit(String)
        /// Possibly not the file; the text says why.
        case unclear(String)
        /// A body that differs from the one for a plain request, which is more likely the file.
        case another
    }

    /// What the answer to the request for the witness says.
    public enum Testimony: Sendable, CaseIterable {
        /// The witness comes.
        case served
        /// The witness is refused, or something else comes in its place, while other files are served.
        case refused
        /// Something else comes in its place, which proves nothing.
        case other
        /// Nothing is known about the witness.
        case nothing
    }

    /// What the answer to a repeated request for the same file says.
    public enum Second: Sendable, CaseIterable {
        /// The same body has come.
        case same
        /// Another body of the same look has come: a body that is made anew for each request differs each time.
        case alike
        /// Another body has come, which is more likely the file.
        case better
        /// No body has come that is more likely the file: the URL may work only once.
        case none
        /// Neither a complete body nor a conclusive head has come in time: the origin may be at its limit, slow or down.
        case unheard
    }

    private let body: Body
    private var turn = 0
    /// Whether the witness has come once more.
    public private(set) var hasWitness = false
    /// Whether something else came in place of the witness, which proves nothing.
    private var isLikeOthers = false
    /// Whether another body of the same look has come each time. Then this body says nothing about the next file of that look.
    public private(set) var isVaried = false

    /// The examination of a body, before anything was asked for.
    public init(of body: Body) {
        self.body = body
    }

    /// Whether the same file is asked for again even if there is no witness.
    public var isAskedAgain: Bool {
        body.isShared || body.isNotice && !body.look.hasDate || body.answersRange && body.look.size == 0
            || body.isElsewhere
    }

    /// Whether the body looks like a page, so that such a file tells nothing about other files.
    public var mayBePage: Bool { body.isPage }

    /// Whether the body is a page, or a text without validators that came while other files were asked for.
    private var mayBeLimit: Bool { body.isPage || body.isShared && body.isUnmarked }

    /// The first step.
    public func begin() -> Step {
        guard body.mayMoveOn, body.isNotice || body.look.size == 0 || body.isRepeated else {
            return .askForWitness(turn: 0)
        }
        return .over(.unclear(", where another source may have it"))
    }

    /// The step that follows an answer to the request for the witness.
    public mutating func hear(_ testimony: Testimony) -> Step {
        switch testimony {
        case .refused: return .over(.limit(", and of one that was served before"))
        case .other:
            // The URLs of both files may work only once.
            isLikeOthers = true
            return .askAgain
        case .served: hasWitness = true
        case .nothing: hasWitness = false
        }
        return hasWitness || isAskedAgain ? .askAgain : .over(.file(isTold: false))
    }

    /// The step that follows an answer to the repeated request for the same file.
    ///
    /// - Parameters:
    ///   - isAlone: whether nothing else was asked for at the origin this time, and the body has come for this file only.
    ///   - turns: how many turns are enough to decide.
    ///   - leaves: whether the file is left for another try if there is no evidence.
    public mutating func hear(_ second: Second, isAlone: Bool, turns: Int, leaves: () -> Bool) -> Step {
        switch second {
        case .same where isLikeOthers, .alike where isLikeOthers: return .over(.unclear(", as of others"))
        case .same:
            // A body that comes repeatedly, and for several files, may be the notice of a limit that lasts a few seconds.
            let mayBeLimit = mayBeLimit || body.isShared && body.isNotice
            let isUntold = mayBeLimit && !hasWitness && !(body.isShared && isAlone)
            if isUntold, leaves() { return .over(.unclear("")) }
        case .better where body.isElsewhere && !body.isSecond: return .over(.another)
        case .better where body.isShared: return .over(.limit(", which comes when less is asked for"))
        case .better: return .over(body.isSecond ? .unclear(", which comes at times") : .another)
        case .alike:
            // A page with an advertisement may be the notice of a limit, even if other files are served.
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
