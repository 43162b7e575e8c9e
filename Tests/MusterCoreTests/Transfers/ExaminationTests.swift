import MusterCore
import Testing

/// The steps of an examination, and its verdicts (range contract, rows 24 and 27; adr/0036).
@Suite struct ExaminationTests {
    private static func look(_ type: String?, size: Int64 = 900, fields: [(String, String)] = []) -> Appearance {
        var headers = fields.map { (name: $0.0, value: $0.1) }
        if let type { headers.append((name: "Content-Type", value: type)) }
        return Appearance(ResponseFacts(status: 200, headers: headers), size: size)
    }

    /// A body that a worker may get.
    enum Found: CaseIterable, Sendable {
        case page, dated, file, nothing

        var look: Appearance {
            switch self {
            case .page: ExaminationTests.look("text/plain")
            case .dated: ExaminationTests.look("text/plain", fields: [("ETag", "\"a\"")])
            case .file: ExaminationTests.look("image/png")
            case .nothing: ExaminationTests.look("image/png", size: 0)
            }
        }
    }

    private func examination(
        _ found: Found, isShared: Bool = true, answersRange: Bool = false, isSecond: Bool = false,
        isElsewhere: Bool = false
    ) -> Examination {
        Examination(
            of: Examination.Body(
                look: found.look, namesNoText: true, isShared: isShared, answersRange: answersRange, isSecond: isSecond,
                isElsewhere: isElsewhere))
    }

    /// Feeds in the answer to the request for the witness, and then the answer to the repeated request for the file.
    private func end(
        _ examination: Examination, _ testimony: Examination.Testimony, _ second: Examination.Second,
        isAlone: Bool = false, turns: Int = 1, leaves: Bool = true
    ) -> Examination.Step {
        var examination = examination
        #expect(examination.begin() == .askForWitness(turn: 0))
        guard case .askAgain = examination.hear(testimony) else { return examination.hear(testimony) }
        return examination.hear(second, isAlone: isAlone, turns: turns) { leaves }
    }

    @Test(arguments: Found.allCases) func bodyInThePlaceOfAServedFileIsALimit(found: Found) {
        for isShared in [false, true] {
            #expect(
                end(examination(found, isShared: isShared), .refused, .same)
                    == .over(.limit(", and of one that was served before")))
            for second in [Examination.Second.same, .alike] {
                #expect(
                    end(examination(found, isShared: isShared), .other, second) == .over(.unclear(", as of others")))
            }
            #expect(end(examination(found, isShared: isShared), .other, .none) == .over(.file(isTold: false)))
        }
    }

    /// A second answer does not count against a body, unless the second body is more likely the file.
    @Test(arguments: Found.allCases, [Examination.Second.none, .alike]) func bodyIsKeptWhereNothingBetterComes(
        found: Found, second: Examination.Second
    ) {
        for testimony in [Examination.Testimony.served, .nothing] {
            for isShared in [false, true] {
                let examination = examination(found, isShared: isShared)
                // A page that differs each time would be left for another try; here it may not be left.
                let step = end(examination, testimony, second, leaves: !(examination.mayBePage && second == .alike))
                guard case .over(.file) = step else {
                    Issue.record("\(testimony), \(isShared): \(step)")
                    continue
                }
            }
        }
    }

    @Test(arguments: Found.allCases) func betterBodyShowsALimitOnlyWhereOthersWereAskedFor(found: Found) {
        #expect(
            end(examination(found), .nothing, .better) == .over(.limit(", which comes when less is asked for")))
        let alone = examination(found, isShared: false, answersRange: true)
        #expect(end(alone, .served, .better) == .over(.another))
        let second = examination(found, isShared: false, answersRange: true, isSecond: true)
        #expect(end(second, .served, .better) == .over(.unclear(", which comes at times")))
    }

    /// `isLeft`: whether a body that comes again is left for another try, if there is no witness.
    @Test(arguments: [
        (Found.page, false, false, true), (.page, true, false, true), (.page, true, true, false),
        (.dated, true, false, true), (.dated, true, true, false), (.file, true, false, false),
        (.nothing, true, false, false),
    ]) func noticeThatComesAgainIsLeftForAnotherTry(found: Found, isShared: Bool, isAlone: Bool, isLeft: Bool) {
        let examination = examination(found, isShared: isShared)
        let step = end(examination, .nothing, .same, isAlone: isAlone)
        #expect(step == .over(isLeft ? .unclear("") : .file(isTold: false)))
        #expect(end(examination, .nothing, .same, isAlone: isAlone, leaves: false) == .over(.file(isTold: false)))
        #expect(end(examination, .served, .same, isAlone: isAlone) == .over(.file(isTold: true)))
    }

    /// An origin that does not answer the second request may be at its limit.
    @Test(arguments: Found.allCases, [false, true]) func bodyThatMayTellOfALimitIsLeftWhereNothingCanBeCompared(
        found: Found, isShared: Bool
    ) {
        let examination = examination(found, isShared: isShared)
        let isKept = isShared ? found == .file : found != .page
        for testimony in [Examination.Testimony.served, .nothing] {
            let step = end(examination, testimony, .unheard)
            #expect(isKept == (step == .over(.file(isTold: false))), "\(step)")
            #expect(end(examination, testimony, .unheard, leaves: false) == .over(.file(isTold: false)))
        }
    }

    @Test func turnsAreTakenWhileTheServedFileComes() {
        var examination = examination(.file)
        #expect(examination.begin() == .askForWitness(turn: 0))
        for turn in 1...3 {
            #expect(examination.hear(.served) == .askAgain)
            let step = examination.hear(.same, isAlone: false, turns: 3) { true }
            #expect(step == (turn < 3 ? .askForWitness(turn: turn) : .over(.file(isTold: true))))
        }
    }

    @Test func nothingIsAskedForWhereAnotherSourceMayHaveTheFile() {
        for found in Found.allCases {
            let body = Examination.Body(look: found.look, namesNoText: true, isShared: true, mayMoveOn: true)
            let isLeft = found != .file
            #expect(
                Examination(of: body).begin()
                    == (isLeft ? .over(.unclear(", where another source may have it")) : .askForWitness(turn: 0)))
        }
    }

    @Test func bodyThatCameAloneIsAskedForAgainOnlyWhereItMayBeForTheRange() {
        #expect(end(examination(.file, isShared: false), .nothing, .same) == .over(.file(isTold: false)))
        #expect(!examination(.file, isShared: false, answersRange: true).isAskedAgain)
        #expect(!examination(.nothing, isShared: false).isAskedAgain)
        #expect(examination(.nothing, isShared: false, answersRange: true).isAskedAgain)
        #expect(examination(.page, isShared: false).isAskedAgain)
        #expect(examination(.file, isShared: false, answersRange: true, isElsewhere: true).isAskedAgain)
    }

    /// The Range is the cause of the redirect, whatever else is asked for at the origin. If no better body comes, the URL may work only
    /// once, and the body is the file.
    @Test(arguments: [Found.page, .file], [false, true])
    func bodyThatARangeWasRedirectedToYieldsToABetterOneAlone(found: Found, isShared: Bool) {
        let examination = examination(found, isShared: isShared, answersRange: true, isElsewhere: true)
        #expect(end(examination, .nothing, .better) == .over(.another))
        #expect(end(examination, .nothing, .none) == .over(.file(isTold: false)))
    }

    /// `(type, size)` of the answer to which a request with a Range was redirected, and of the answer to a plain request that was
    /// redirected too.
    @Test(
        arguments: [
            (("text/html", 900), ("application/zip", 2_000), true), (("text/html", 2_000), ("text/html", 900), false),
            (("application/json", 40), ("application/json", 900), true), (("text/csv", 900), ("text/csv", 40), false),
            (("text/csv", 900), ("application/octet-stream", 40), false), (("text/csv", 900), ("text/csv", 0), false),
            (("text/csv", 900), ("text/html", 2_000), false),
        ] as [((String, Int64), (String, Int64), Bool)])
    func plainAnswerIsTheFileUnlessItIsLess(elsewhere: (String, Int64), plain: (String, Int64), isRather: Bool) {
        func look(_ found: (String, Int64), isRedirected: Bool) -> Appearance {
            let headers = [(name: "Content-Type", value: found.0)]
            return Appearance(
                ResponseFacts(status: 200, headers: headers, isRedirected: isRedirected), size: found.1)
        }
        let before = look(elsewhere, isRedirected: true)
        for namesNoPage in [true, false] {
            #expect(
                look(plain, isRedirected: true).isRatherTheFile(thanElsewhere: before, namesNoPage: namesNoPage)
                    == isRather)
            // The plain request was not redirected: only requests with a Range are.
            #expect(look(plain, isRedirected: false).isRatherTheFile(thanElsewhere: before, namesNoPage: namesNoPage))
        }
    }
}
