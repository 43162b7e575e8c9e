import MusterAPI
import MusterCore
import Testing

@testable import MusterCommandLine

@Suite("Explanations and failures in words")
struct ExplanationTextTests {
    private static let later = Timestamp(microseconds: Samples.moment.microseconds + 4_000_000)

    private func task(_ state: TaskState, failure: TaskFailure? = nil) -> TaskDocument {
        var task = TaskDocument(
            key: "a/b.tar", state: state, urls: ["https://a.example/b.tar"], path: "a/b.tar", createdAt: Samples.moment)
        task.bytes = .init(done: 12 << 20, total: 1 << 30)
        task.contentVersion = 2
        task.attempts = 2
        task.failure = failure
        task.startedAt = Samples.moment
        return task
    }

    private func attempt(_ kind: FailureKind, _ status: Int?) -> TaskAttempt {
        .init(
            at: Samples.moment, worker: "w1", source: "https://a.example/b.tar", kind: kind, status: status,
            detail: "the origin said no", requestID: "r-1", address: "192.0.2.1", offset: 0, outcome: .retry)
    }

    private func explanation() -> ExplanationDocument {
        var explanation = ExplanationDocument(
            task: task(.active), group: "nightly", summary: "The worker w1 is fetching a chunk of it.",
            waits: [
                .init(reason: .fetching, detail: "the worker w1 is fetching a chunk of it", since: Samples.moment),
                .init(reason: .backoff, detail: "the last try failed: connection failed", until: Self.later),
            ], chunks: .init(done: 1, leased: 1, ready: 0, waiting: 2, parked: 0))
        explanation.next = "2 more chunks are fetched as there is room"
        explanation.work = [
            .init(
                worker: "w1", kind: .fetch, start: 0, end: 8 << 20, durable: 4 << 20, source: "https://a.example/b.tar",
                since: Samples.moment)
        ]
        explanation.sources = [
            .init(
                url: "https://a.example/b.tar", origin: "https://a.example:443", state: .usable, failures: 2,
                bytes: 12 << 20, bytesPerSecond: 36_805_017, resolvedAt: nil)
        ]
        explanation.attempts = [attempt(.httpStatus(503), 503), attempt(.notFound, 404)]
        return explanation
    }

    @Test func theLinesOfAnExplanation() {
        #expect(
            ExplanationText.lines(explanation(), clock: Samples.clock) == [
                "a/b.tar (nightly): active, 12.0 MiB of 1.0 GiB, content version 2",
                "The worker w1 is fetching a chunk of it, since 2026-03-01 13:00:00 (15s ago).",
                "next: 2 more chunks are fetched as there is room",
                "also: the last try failed: connection failed, until 2026-03-01 13:00:04 (11s ago)",
                "",
                "work:",
                "  WORKER  DOES   FROM       TO  DURABLE  SINCE                          SOURCE",
                "  w1      fetch     0  8388608  4.0 MiB  2026-03-01 13:00:00 (15s ago)  https://a.example/b.tar",
                "",
                "sources:",
                "  STATE   FAILURES     BYTES       SPEED  SOURCE",
                "  usable         2  12.0 MiB  35.1 MiB/s  https://a.example/b.tar",
                "",
                "2 tries failed:",
                "  TIME                           FAILURE                  THEN   WORKER  REQUEST  DETAIL",
                "  2026-03-01 13:00:00 (15s ago)  503 Service Unavailable  again  w1      r-1      the origin said no",
                "  2026-03-01 13:00:00 (15s ago)  404 Not Found            again  w1      r-1      the origin said no",
            ]
        )
    }

    @Test func aTerminalHasRoomForTheLastFailures() {
        var explanation = explanation()
        explanation.attempts = Array(repeating: attempt(.httpStatus(503), 503), count: 20)
        explanation.attempts[19].detail = "the newest"
        let lines = ExplanationText.lines(explanation, width: 200)
        #expect(lines.contains("20 failures, which count as 2 tries; the last 5:"), "\(lines)")
        #expect(lines.count { $0.contains("503 Service") } == 5 && lines.last?.hasSuffix("the newest") == true)
    }

    @Test func textOfOriginsCanNotMoveTheCursor() {
        var explanation = explanation()
        explanation.attempts[0].detail = "a\u{1B}[2Jb"
        explanation.waits[1].detail = "c\nd"
        let lines = ExplanationText.lines(explanation)
        #expect(lines.allSatisfy { $0.unicodeScalars.allSatisfy { $0.value >= 32 } })
        #expect(lines.contains { $0.contains("a\\u{1b}[2Jb") })
    }

    @Test func theTriesOfATaskOfGet() {
        #expect(
            ExplanationText.tries(explanation(), most: 1, clock: Samples.clock) == [
                "a/b.tar: 2 tries failed; the last 1:",
                "  2026-03-01 13:00:00 (15s ago)  404 Not Found, then again",
            ]
        )
        var mirrored = explanation()
        mirrored.attempts[0].source = "https://b.example/b.tar"
        #expect(
            ExplanationText.tries(mirrored, most: 1, clock: Samples.clock).last
                == "  2026-03-01 13:00:00 (15s ago)  404 Not Found from https://a.example/b.tar, then again")
        var limited = explanation()
        limited.task.attempts = 1
        #expect(
            ExplanationText.tries(limited, most: 1)[0]
                == "a/b.tar: 2 failures, which count as one try; the last 1:",
            "one was refused since there were too many at once")
        var once = explanation()
        once.attempts.removeLast()
        #expect(ExplanationText.tries(once, most: 3).isEmpty, "the failure tells it")
    }

    @Test func aFailureNamesKindStatusSourceAndRequest() {
        let failure = TaskFailure(
            kind: .notFound, detail: "it does not have it", at: Samples.moment, status: 404,
            source: "https://a.example/b", requestID: "r-1")
        #expect(
            FailureText.text(failure, isDecided: true)
                == "404 Not Found from https://a.example/b: it does not have it [request r-1]")
        let bare = TaskFailure(kind: .httpStatus(503), detail: "busy", at: Samples.moment, status: 503)
        #expect(FailureText.text(bare, isDecided: true) == "503 Service Unavailable: busy")
        #expect(PlainProgress.failure(task(.failed, failure: bare)) == "failed: a/b.tar: 503 Service Unavailable: busy")
    }

    /// The status isn't repeated if the detail has it, and a failure of the disk names no source.
    @Test func aFailureSaysEachFactOnce() {
        func text(_ kind: FailureKind, _ detail: String, status: Int? = nil) -> String {
            FailureText.text(
                TaskFailure(
                    kind: kind, detail: detail, at: Samples.moment, status: status, source: "https://a.example/b"),
                isDecided: true)
        }
        let asked = "with a range and without one"
        #expect(
            text(.authentication, "\(asked): the origin answered 401", status: 401)
                == "401 Unauthorized from https://a.example/b, \(asked)")
        let several = "with a range: the origin answered 400; without a range: the origin answered 418"
        #expect(text(.httpStatus(418), several, status: 418) == "status 418 from https://a.example/b: \(several)")
        #expect(
            text(.httpStatus(503), "the origin answered 503", status: 503)
                == "503 Service Unavailable from https://a.example/b")
        #expect(
            text(.badRange, "the length is odd", status: 200)
                == "unusable answer (status 200) from https://a.example/b: the length is odd")
        #expect(text(.storage, "a different file stands at f") == "file not stored: a different file stands at f")
    }

    @Test func theLineOfAFailureThatAnEventTellsNamesThemToo() throws {
        let failure: [String: JSONValue] = [
            "kind": .string("notFound"), "detail": .string("gone"), "status": .integer(410),
            "source": .string("https://a.example/b"), "requestID": .string("r-1"),
        ]
        let event = Samples.event("task.failed", Samples.task(with: ["failure": .object(failure)]))
        #expect(
            FileNews(try event.payload(), at: event.time)?.line
                == "failed: k: 410 Gone from https://a.example/b: gone [request r-1]")
    }

    @Test func theHintCanBeTyped() {
        #expect(FailureText.hint(group: "g", key: "a/b.tar") == "muster explain g a/b.tar")
        #expect(FailureText.hint(group: "g", key: "it's") == #"muster explain g 'it'\''s'"#)
        #expect(FailureText.hint(group: "g", key: "-x") == "muster explain g -- '-x'")
        #expect(FailureText.hint(group: "g", key: "a$(b)") == "muster explain g 'a$(b)'")
    }

    @Test func failuresEndWithTheCommandsThatTellMore() {
        let group = Samples.group(state: .failed, total: 3, succeeded: 0, failed: 3)
        let failure = TaskFailure(kind: .timeout, detail: "too late", at: Samples.moment)
        #expect(
            GroupResult.lines([task(.failed, failure: failure)], of: group) == [
                "failed: a/b.tar: no answer in time: too late", "… and 2 more: muster tasks nightly --state failed",
                "hint: what failed is tried again with: muster retry nightly", "why: muster explain nightly a/b.tar",
            ]
        )
        #expect(GroupResult.lines([], of: Samples.group()).isEmpty)
        // The hints are also printed where the failures themselves were printed as they happened.
        #expect(
            GroupResult.lines([task(.failed, failure: failure)], of: group).dropFirst(2)
                == GroupResult.hints([task(.failed, failure: failure)], of: group)[...])
    }

    @Test func anExplanationNamesARetryAloneOnlyWhereThatHelps() {
        func next(_ kind: FailureKind, _ detail: String) -> String? {
            var explanation = explanation()
            explanation.task = task(.failed, failure: .init(kind: kind, detail: detail, at: Samples.moment))
            explanation.next = "put it back with what it has: muster retry nightly a/b.tar"
            return ExplanationText.lines(explanation, clock: Samples.clock).first {
                $0.hasPrefix("then: ") || $0.hasPrefix("next: ")
            }
        }
        #expect(
            next(.storage, "a different file stands at a/b.tar: it has 6 bytes")
                == "then: once it is moved away: muster retry nightly a/b.tar; for the options, which a group keeps: "
                + "muster remove nightly a/b.tar, and then muster add OTHER-GROUP … with one of them")
        #expect(
            next(.authentication, "the origin answered 401")
                == "then: such options are changed with: muster set nightly …, and then: muster retry nightly")
        #expect(
            next(.refusedAddress, "the address 127.0.0.1 is not allowed")
                == "then: the coordinator has that option (muster up, muster serve); and then: muster retry nightly")
        #expect(next(.notFound, "") == "then: put it back with what it has: muster retry nightly a/b.tar")
        #expect(next(.timeout, "") == "next: put it back with what it has: muster retry nightly a/b.tar")
    }

    @Test func hintsCountAllFailures() {
        let failures = (1...100).map { Samples.troubled("f\($0)", kind: .notFound) }
        var group = Samples.group(state: .failed, total: 100, succeeded: 0, failed: 100)
        let lines = GroupResult.lines(failures, of: group)
        #expect(lines.count == 23 && lines[20] == "… and 80 more: muster tasks nightly --state failed")
        #expect(lines[21] == "hint: f1, f2, f3 and 97 more: the origin does not have it: check the URL")
        group.tasks.failed = 20_000
        #expect(GroupResult.hints(failures, of: group)[0].hasPrefix("hint: f1, f2, f3 and at least 97 more: "))
    }

    @Test func hintsNameTheFilesThatTheyAreFor() {
        let refused = (1...5).map { Samples.troubled("f\($0)", kind: .httpStatus(403)) }
        let slow = Samples.troubled("late", kind: .timeout)
        let hints = FailureAdvice.hints(refused + [slow, Samples.troubled("gone", kind: .notFound)])
        #expect(hints.count == 2)
        #expect(hints[0].hasPrefix("f1, f2, f3 and 2 more: the origin refuses to give it"))
        #expect(hints[1] == "gone: the origin does not have it: check the URL")
        let group = Samples.group(state: .failed, total: 1, succeeded: 0, failed: 1)
        let explanation = GroupExplanationDocument(
            group: group, summary: "It failed.", next: nil, waits: [], slowestOrigin: nil, criticalPath: [],
            eta: .init(seconds: nil, because: "it has failed"), at: Samples.moment)
        #expect(
            GroupExplanationText.lines(explanation, failures: [refused[0]]).suffix(3) == [
                "It failed.", "hint: \(FailureAdvice.hints([refused[0]])[0])",
                "hint: such options are changed with: muster set nightly …, and then: muster retry nightly",
            ])
        // How a file is put in place is set when its group is made.
        let taken = TaskFailure(kind: .storage, detail: "another file stands at a", at: Samples.moment)
        #expect(
            FailureAdvice.groupHints([task(.failed, failure: taken)], of: "g").suffix(2) == [
                "a group keeps such options: muster remove g, and then muster add g … with them",
                "what failed is tried again with: muster retry g",
            ])
        let late = TaskFailure(kind: .deadline, detail: "not there in time", at: Samples.moment)
        #expect(
            FailureAdvice.groupHints([task(.failed, failure: late)], of: "g")
                == [
                    "\(Samples.troubled("a/b.tar").path): there was too little time",
                    "more time is given with: muster limit g --deadline 2h, and then: muster retry g",
                ])
    }

    /// The group's deadline is another one, and a retry only gives the task the same time again.
    @Test func aTaskThatFailedByItsOwnDeadlineIsAddedWithAnother() throws {
        let late = TaskFailure(
            kind: .deadline, detail: "it was not done within 3 s of when it was added or retried", at: Samples.moment)
        #expect(
            FailureAdvice.groupHints([task(.failed, failure: late)], of: "g")
                == [
                    "a/b.tar: it has a deadline of its own, which was too short: give it a longer one",
                    "a task keeps its own deadline: muster remove g KEY, and then muster add g --reopen -i MANIFEST with another one; "
                        + "for the same time once more: muster retry g",
                ])
        let advice = try #require(FailureAdvice.advice(late))
        let way = FailureAdvice.way(advice, group: "g", key: "a b")
        #expect(
            way?.contains("muster remove g 'a b', and then") == true && way?.hasSuffix("muster retry g 'a b'") == true)
        #expect(
            FailureAdvice.lines([task(.failed, failure: late)]).last?.hasPrefix("run the same command again") == true)
    }
}
