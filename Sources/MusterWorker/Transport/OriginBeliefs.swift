import MusterCore
import MusterSystem
import Synchronization

/// Decides which small bodies of an origin are taken for files without a further question: some origins announce a limit by a small body with status 200
/// (range contract, rows 24 and 27; adr/0036).
final class OriginBeliefs: Sendable {
    /// What a body is taken for.
    enum Standing: Sendable {
        case file
        /// A body that announced a limit a moment ago.
        case limit
        case unknown
    }

    /// What is known of answers that look alike.
    private struct Kind {
        /// Whether one of them was seen to be a file.
        var isKnown = false
        /// The bodies that came in such answers, each with the URL that it came from first.
        var bodies: [DurablePrefix: Body] = [:]
        /// How many bodies were seen to be files, and how many of these to be the content of several files.
        var seen = 0
        var shared = 0
        /// The bodies that were seen to be no file, each with the time until which the same body is rejected without a
        /// further question.
        var limits: [DurablePrefix: Int64] = [:]
        /// By URL, how often a body was left for another attempt.
        var doubts: [Int: Int] = [:]
        /// By URL, sizes of bodies that differ too much to be those of one page.
        var sizes: [Int: Int64] = [:]

        mutating func note(_ body: Body, _ read: DurablePrefix) {
            if bodies.count >= OriginBeliefs.mostBodies { bodies = [:] }
            bodies[read] = body
        }
    }

    private struct Body {
        let url: Int
        /// Whether the body has come from another URL too.
        var isRepeated = false
        /// Whether the body was seen to be the content of files, even of several.
        var isShared = false
    }

    private struct State {
        var kinds = Remembered<Kind>()
        /// How many examinations of an origin have let others go first.
        var passed = Remembered<Int>()
        /// The origins at which a job examines a body now.
        var examined: Set<String> = []
    }

    /// How long a body that was seen to be no file is rejected without a further question, in nanoseconds.
    private static let echo: Int64 = 2_000_000_000
    /// How long everything else is remembered, in nanoseconds.
    private static let memory: Int64 = 600_000_000_000
    /// After this many bodies that several files share, further bodies that come for several files are believed.
    private static let sharedToBelieve = 3
    /// After this many files that may be pages, other bodies of their look are believed.
    private static let pagesToBelieve = 3
    /// At the attempt of this number, a body that may be a page is believed if nothing decides.
    private static let triesToBelieve = 3
    /// The bodies of a look are seen to be no page after this many of them, if their sizes differ by at least
    /// `leastDifference` bytes: smaller differences may be due to a page that names the file.
    private static let sizesToBelieve = 3
    private static let leastDifference: Int64 = 512
    /// How many examinations of an origin let others go first. Each takes some seconds if the others show nothing.
    private static let mostPasses = 16
    /// How many bodies of a kind are remembered.
    private static let mostBodies = 4_096

    private let state = Mutex(State())
    /// Rung when an examination is over: another job of the origin may begin one.
    let examined = Bell()
    private let now: @Sendable () -> Int64

    /// Begins without knowledge. `now` returns the nanoseconds of a clock that never jumps.
    init(now: @escaping @Sendable () -> Int64 = MonotonicClock.now) {
        self.now = now
    }

    /// Whether files of the origin were seen to come in answers of this look.
    func knows(_ look: Appearance, of origin: String) -> Bool {
        let moment = now()
        return look.isUsual
            || state.withLock { $0.kinds.value(of: Self.key(look, origin), at: moment)?.isKnown == true }
    }

    /// What a body from `url` is taken for. With `isPage`, its size proves nothing: a page may differ in size each time, as with an advertisement.
    func standing(
        of read: DurablePrefix, as look: Appearance, isPage: Bool = false, from url: String, of origin: String
    ) -> Standing {
        let moment = now()
        return change(look, origin) { kind in
            if kind.limits[read] ?? 0 > moment { return .limit }
            if !kind.isKnown, !isPage {
                let isNew = kind.sizes.values.allSatisfy { abs($0 - read.offset) >= Self.leastDifference }
                if isNew, kind.sizes[url.hashValue] == nil { kind.sizes[url.hashValue] = read.offset }
                kind.isKnown = kind.sizes.count >= Self.sizesToBelieve
            }
            let body = kind.bodies[read] ?? Body(url: url.hashValue)
            let isRepeated = body.isRepeated || body.url != url.hashValue
            kind.note(Body(url: body.url, isRepeated: isRepeated, isShared: body.isShared), read)
            let isFile = (kind.isKnown || look.isUsual) && (!isRepeated || kind.shared >= Self.sharedToBelieve)
            return isFile || body.isShared ? .file : .unknown
        }
    }

    /// Notes that a body from `url` was seen to be its file. With `mayBePage` it counts as one file only, and it takes three of them to make their look
    /// known.
    func believe(
        _ read: DurablePrefix, as look: Appearance, mayBePage: Bool = false, from url: String, of origin: String
    ) {
        change(look, origin) { kind in
            let body = kind.bodies[read] ?? Body(url: url.hashValue)
            if !body.isShared { kind.seen += 1 }
            if body.isRepeated, !body.isShared { kind.shared += 1 }
            kind.isKnown = kind.isKnown || kind.seen >= (mayBePage ? Self.pagesToBelieve : 1)
            kind.note(Body(url: body.url, isRepeated: body.isRepeated, isShared: true), read)
        }
        change(look.asOther, origin) { $0.note(Body(url: url.hashValue, isShared: true), read) }
    }

    /// Whether a body from `url` is left for another attempt if nothing decides: this is so twice.
    func leaves(_ url: String, as look: Appearance, of origin: String) -> Bool {
        change(look, origin) { kind in
            kind.doubts[url.hashValue, default: 0] += 1
            return kind.doubts[url.hashValue, default: 0] < Self.triesToBelieve
        }
    }

    /// Whether the same body has come from several URLs.
    func isRepeated(_ read: DurablePrefix, as look: Appearance, of origin: String) -> Bool {
        change(look, origin) { $0.bodies[read]?.isRepeated == true }
    }

    /// Notes that a body was seen to be no file.
    func disprove(_ read: DurablePrefix, as look: Appearance, of origin: String) {
        let moment = now()
        change(look, origin) { $0 = Kind(limits: [read: moment + Self.echo]) }
    }

    /// Whether an examination may let others go first, to learn from them whether the origin serves a file more than
    /// once.
    func mayLetOthersPass(_ origin: String) -> Bool {
        let moment = now()
        return state.withLock {
            $0.passed.change(of: origin, at: moment, until: moment + Self.memory, from: 0) { count in
                count += 1
                return count <= Self.mostPasses
            }
        }
    }

    /// Begins the examination of a body of an origin; `false` while another job examines one.
    func begin(_ origin: String) -> Bool {
        state.withLock { $0.examined.insert(origin).inserted }
    }

    /// Ends the examination.
    func end(_ origin: String) {
        state.withLock { _ = $0.examined.remove(origin) }
        examined.ring()
    }

    private func change<Result>(_ look: Appearance, _ origin: String, _ body: (inout Kind) -> Result) -> Result {
        let moment = now()
        let key = Self.key(look, origin)
        return state.withLock {
            $0.kinds.change(of: key, at: moment, until: moment + Self.memory, from: Kind(), body)
        }
    }

    private static func key(_ look: Appearance, _ origin: String) -> String { "\(origin) \(look.kind)" }
}
