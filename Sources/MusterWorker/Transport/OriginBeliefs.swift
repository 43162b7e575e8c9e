import MusterCore
import MusterSystem
import Synchronization

/// Which small bodies of an origin are taken for files without a further question: some origins tell of a limit by one with status 200 (range contract,
/// rows 24 and 27; adr/0036).
final class OriginBeliefs: Sendable {
    /// What a body is taken for.
    enum Standing: Sendable {
        case file
        /// What told of a limit a moment ago.
        case limit
        case unknown
    }

    /// What is known of answers that look alike.
    private struct Kind {
        /// Whether one of them was seen to be a file.
        var isKnown = false
        /// What has come so, with the URL that it came from first.
        var bodies: [DurablePrefix: Body] = [:]
        /// How many contents were seen to be those of files, and how many of these to be those of several files.
        var seen = 0
        var shared = 0
        /// What was seen to be no file, and until when what comes so is taken for an echo of that.
        var limits: [DurablePrefix: Int64] = [:]
        /// By URL, how often what came was left for another try.
        var doubts: [Int: Int] = [:]
        /// By URL, sizes that are none of one page.
        var sizes: [Int: Int64] = [:]

        mutating func note(_ body: Body, _ read: DurablePrefix) {
            if bodies.count >= OriginBeliefs.mostBodies { bodies = [:] }
            bodies[read] = body
        }
    }

    private struct Body {
        let url: Int
        /// Whether it has come from another URL too.
        var isRepeated = false
        /// Whether it was seen to be the content of files, however many there are.
        var isShared = false
    }

    private struct State {
        var kinds = Remembered<Kind>()
        /// How many examinations of an origin have let others pass.
        var passed = Remembered<Int>()
        /// The origins at which a job sees whether what came is a file.
        var examined: Set<String> = []
    }

    /// How long what was seen to be no file is none without being asked for again, in nanoseconds.
    private static let echo: Int64 = 2_000_000_000
    /// How long all else is remembered, in nanoseconds.
    private static let memory: Int64 = 600_000_000_000
    /// So many contents of several files make others believed that come for several.
    private static let sharedToBelieve = 3
    /// So many files that may be pages make others of their look believed.
    private static let pagesToBelieve = 3
    /// At the try of this number a page is believed where nobody can tell.
    private static let triesToBelieve = 3
    /// So many bodies are seen to be no page by their sizes, if these differ by so many bytes: a page may name the file.
    private static let sizesToBelieve = 3
    private static let leastDifference: Int64 = 512
    /// How many examinations of an origin let others pass, which takes them seconds where those tell nothing.
    private static let mostPasses = 16
    /// How many bodies of a kind are remembered.
    private static let mostBodies = 4_096

    private let state = Mutex(State())
    /// Rung when an examination is over: another job of the origin may begin one.
    let examined = Bell()
    private let now: @Sendable () -> Int64

    /// Nothing is known yet. `now` tells nanoseconds of a clock that never jumps.
    init(now: @escaping @Sendable () -> Int64 = MonotonicClock.now) {
        self.now = now
    }

    /// Whether files of the origin were seen to come in answers of this look.
    func knows(_ look: Appearance, of origin: String) -> Bool {
        let moment = now()
        return look.isUsual
            || state.withLock { $0.kinds.value(of: Self.key(look, origin), at: moment)?.isKnown == true }
    }

    /// What it is taken for that has come from `url`. What may be a page has another size each time, as with an advertisement.
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

    /// What has come from `url` was seen to be its file. What may be a page is no more than one such file, and its look is known by three.
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

    /// Whether what has come from `url` is to be left for another try, where nobody can tell: so it is twice.
    func leaves(_ url: String, as look: Appearance, of origin: String) -> Bool {
        change(look, origin) { kind in
            kind.doubts[url.hashValue, default: 0] += 1
            return kind.doubts[url.hashValue, default: 0] < Self.triesToBelieve
        }
    }

    /// Whether the same has come from several URLs.
    func isRepeated(_ read: DurablePrefix, as look: Appearance, of origin: String) -> Bool {
        change(look, origin) { $0.bodies[read]?.isRepeated == true }
    }

    /// What has come was seen to be no file.
    func disprove(_ read: DurablePrefix, as look: Appearance, of origin: String) {
        let moment = now()
        change(look, origin) { $0 = Kind(limits: [read: moment + Self.echo]) }
    }

    /// Whether an examination may wait until others have shown whether the origin serves a file more than once.
    func mayLetOthersPass(_ origin: String) -> Bool {
        let moment = now()
        return state.withLock {
            $0.passed.change(of: origin, at: moment, until: moment + Self.memory, from: 0) { count in
                count += 1
                return count <= Self.mostPasses
            }
        }
    }

    /// Begins to examine what came from an origin; `false` while another job does.
    func begin(_ origin: String) -> Bool {
        state.withLock { $0.examined.insert(origin).inserted }
    }

    /// That is over.
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
