import Hummingbird
import MusterAPI
import MusterCore
import MusterStore
import NIOCore
import Synchronization

/// A stretch of the log, shared by all requests with the same question. It is read once, and encoded once in each form.
final class EventPage: Sendable {
    /// The stretch that was read.
    let stretch: EventStretch
    /// The number of the read, counted from 1.
    let number: Int
    /// How often the bell had rung when the read began.
    fileprivate let rings: Int
    private let forms = Mutex<(document: ByteBuffer?, stream: ByteBuffer?)>((nil, nil))

    fileprivate init(_ stretch: EventStretch, number: Int, rings: Int) {
        self.stretch = stretch
        self.number = number
        self.rings = rings
    }

    /// The approximate size in memory, in bytes.
    fileprivate var bytes: Int { stretch.events.reduce(0) { $0 + 3 * $1.data.utf8.count + 512 } }

    /// The stretch as a JSON document.
    func document() throws -> ByteBuffer {
        try forms.withLock { forms in
            if let known = forms.document { return known }
            let document = EventsDocument(
                items: try stretch.events.map { try EventDocument($0) }, next: stretch.next, log: stretch.log)
            let bytes = ByteBuffer(bytes: try EventBytes.encode(document))
            forms.document = bytes
            return bytes
        }
    }

    /// The stretch as server-sent events.
    func stream() throws -> ByteBuffer {
        try forms.withLock { forms in
            if let known = forms.stream { return known }
            var text = ByteBuffer()
            for event in stretch.events {
                text.writeString("id: \(event.position)\nevent: \(event.type)\ndata: ")
                text.writeBytes(try EventBytes.encode(EventDocument(event)))
                text.writeString("\n\n")
            }
            // An id without data is no event, but the reader resumes from it: a filter may let nothing pass for longer than
            // events are kept.
            if stretch.events.isEmpty { text.writeString(": nothing new\nid: \(stretch.next)\n\n") }
            forms.stream = text
            return text
        }
    }
}

/// Reads the log once for all requests that ask the same at the same time, so that a thousand followers cost the database
/// as much as one (I19).
///
/// A reader gets a read that began after its request. A follower of the log also accepts a read that began after the last
/// ring of the bell: events that this read missed make the bell ring.
final class EventPages: Sendable {
    private struct Running {
        let task: Task<EventPage, any Error>
        /// How often the bell had rung when the read began; `nil` before it begins.
        var rings: Int?
    }

    private struct State {
        var running: [EventReader.Question: Running] = [:]
        /// The pages that were read since the last ring of the bell, the newest at the end.
        var pages: [(question: EventReader.Question, page: EventPage)] = []
        var reads = 0
        /// The last known end of the log.
        var end: Int64?
        var lastTurn = ContinuousClock.now
        var followers = 0

        mutating func keep(_ page: EventPage, of question: EventReader.Question) {
            pages.removeAll { $0.question == question || $0.page.rings < page.rings }
            pages.append((question, page))
            while pages.count > pageLimit || pages.reduce(0, { $0 + $1.page.bytes }) > byteLimit {
                pages.removeFirst()
            }
        }
    }

    /// The limits on the kept pages: their number, and their bytes together.
    private static let pageLimit = 32
    private static let byteLimit = 4 << 20
    /// About what waking one follower costs. Followers at the end of the log get new events no more often than once in this
    /// time multiplied by their number, so that a thousand of them take at most half of a processor.
    private static let turn = Duration.microseconds(500)
    private static let longestTurn = Duration.seconds(1)

    private let bell: Bell
    private let read: @Sendable (EventReader.Question) async throws -> EventStretch
    private let state = Mutex(State())

    /// - Parameter read: asks the database.
    init(bell: Bell, read: @escaping @Sendable (EventReader.Question) async throws -> EventStretch) {
        self.bell = bell
        self.read = read
    }

    /// Counts a follower of the log while `body` runs.
    func following<Answer>(_ body: () async throws -> Answer) async rethrows -> Answer {
        state.withLock { $0.followers += 1 }
        defer { state.withLock { $0.followers -= 1 } }
        return try await body()
    }

    /// The page for a question, from a read that begins now or later.
    func page(_ question: EventReader.Question) async throws -> EventPage {
        try await page(question, isEnough: { _ in false }, mayJoin: { _ in false })
    }

    /// The next page for a follower.
    ///
    /// - Parameter seen: the number of the read that the follower was given last, if it asks the same again. A ring may be
    ///   lost (fault F14), so it needs a later read.
    func next(_ question: EventReader.Question, seen: Int) async throws -> EventPage {
        let rings = bell.rings
        return try await page(
            question, isEnough: { $0.rings >= rings && $0.number > seen }, mayJoin: { $0 >= rings })
    }

    /// What to do for a question. It is decided under one lock, so that a read that ends meanwhile is either awaited or
    /// returned, and not repeated.
    private enum Decision {
        case give(EventPage)
        case wait(for: Task<EventPage, any Error>, isLate: Bool)
    }

    private func page(
        _ question: EventReader.Question, isEnough: (EventPage) -> Bool, mayJoin: (_ rings: Int) -> Bool
    ) async throws -> EventPage {
        var hasWaited = false
        while true {
            let decision: Decision = state.withLock { state in
                if let known = state.pages.last(where: { $0.question == question && isEnough($0.page) }) {
                    return .give(known.page)
                }
                guard let running = state.running[question] else {
                    let turn = Self.turn(state, question)
                    let task = Task { try await self.run(question, at: turn) }
                    state.running[question] = Running(task: task)
                    return .wait(for: task, isLate: false)
                }
                // A read that began before the question may have missed what is asked for. After one wait, every running
                // read began later.
                return .wait(for: running.task, isLate: !hasWaited && !(running.rings.map(mayJoin) ?? true))
            }
            switch decision {
            case .give(let page): return page
            case .wait(let task, let isLate):
                let result = await task.result
                guard isLate else { return try result.get() }
                hasWaited = true
            }
        }
    }

    /// When a read is to begin; `nil` for at once.
    private static func turn(_ state: State, _ question: EventReader.Question) -> ContinuousClock.Instant? {
        guard let end = state.end, let after = question.after, after >= end else { return nil }
        return state.lastTurn + min(turn * state.followers, longestTurn)
    }

    private func run(_ question: EventReader.Question, at turn: ContinuousClock.Instant?) async throws -> EventPage {
        if let turn { try? await Task.sleep(until: turn, clock: .continuous) }
        let rings = bell.rings
        let number = state.withLock { state in
            state.running[question]?.rings = rings
            if turn != nil { state.lastTurn = .now }
            state.reads += 1
            return state.reads
        }
        do {
            let page = EventPage(try await read(question), number: number, rings: rings)
            state.withLock { state in
                state.running[question] = nil
                if page.stretch.isEnd { state.end = max(state.end ?? 0, page.stretch.next) }
                state.keep(page, of: question)
            }
            return page
        } catch {
            state.withLock { $0.running[question] = nil }
            throw error
        }
    }
}
