import MusterSystem
import Testing

@testable import MusterPostgres

@Suite struct StatementCacheTests {
    private func key(_ text: String) -> StatementCache.Key { .init(text: text, types: [.int8]) }

    @Test func secondUsePrepares() {
        var cache = StatementCache(limit: 2)
        #expect(cache.plan(for: key("a")) == .unprepared)
        #expect(cache.plan(for: key("a")) == .prepare(name: "muster_1"))
        cache.didPrepare(key("a"), name: "muster_1")
        #expect(cache.plan(for: key("a")) == .prepared(name: "muster_1"))
    }

    @Test func failedPreparingIsTriedUnderANewName() {
        var cache = StatementCache(limit: 2)
        _ = cache.plan(for: key("a"))
        #expect(cache.plan(for: key("a")) == .prepare(name: "muster_1"))
        #expect(cache.plan(for: key("a")) == .prepare(name: "muster_2"))
    }

    @Test func bindTypesTellStatementsApart() {
        var cache = StatementCache(limit: 2)
        _ = cache.plan(for: key("a"))
        #expect(cache.plan(for: .init(text: "a", types: [.text])) == .unprepared)
    }

    @Test func leastRecentlyUsedIsEvictedAndDiscarded() {
        var cache = StatementCache(limit: 2)
        for text in ["a", "b"] {
            _ = cache.plan(for: key(text))
            guard case .prepare(let name) = cache.plan(for: key(text)) else {
                Issue.record("not prepared")
                return
            }
            cache.didPrepare(key(text), name: name)
        }
        _ = cache.plan(for: key("a"))
        _ = cache.plan(for: key("c"))
        #expect(cache.count == 2)
        #expect(cache.takeDiscarded() == ["muster_2"])
        #expect(cache.takeDiscarded() == [])
        #expect(cache.plan(for: key("a")) == .prepared(name: "muster_1"))
    }

    @Test func forgottenStatementIsDiscardedOnlyIfTheServerHasIt() {
        for stillThere in [true, false] {
            var cache = StatementCache(limit: 2)
            _ = cache.plan(for: key("a"))
            _ = cache.plan(for: key("a"))
            cache.didPrepare(key("a"), name: "muster_1")
            cache.forget(key("a"), stillThere: stillThere)
            #expect(cache.takeDiscarded() == (stillThere ? ["muster_1"] : []))
            #expect(cache.plan(for: key("a")) == .unprepared)
        }
    }

    @Test func limitOfZeroPreparesNothing() {
        var cache = StatementCache(limit: 0)
        _ = cache.plan(for: key("a"))
        #expect(cache.plan(for: key("a")) == .unprepared)
    }

    @Test(
        arguments: [
            (-1, 0), (0, 0), (1, 0.1), (2, 0.2), (3, 0.4), (6, 3.2), (7, 5), (40, 5), (41, 5), (Int.max, 5),
        ] as [(Int, Double)])
    func backoffDoublesUpToItsBound(failures: Int, longest: Double) {
        for jitter in [0, 0.5, 1] {
            let backoff = Backoff(first: .milliseconds(100), longest: .seconds(5), jitter: jitter)
            let bound = Duration.milliseconds(Int64(longest * 1_000))
            #expect(backoff.delay(failures: failures, random: 1) == bound)
            #expect(backoff.delay(failures: failures, random: 0) == bound * (1 - jitter))
            #expect(backoff.delay(failures: failures, random: 0.5) == bound * (1 - jitter / 2))
        }
    }
}

@Suite struct InterruptionTests {
    @Test func lateCancellationDoesNotReachTheNextStatement() throws {
        let interruption = try Interruption()
        let first = interruption.begin()
        let second = interruption.begin()
        interruption.cancel(statement: first)
        #expect(!interruption.isCancelled(statement: first))
        #expect(!interruption.isCancelled(statement: second))
        #expect(!Polling.isReadable(interruption.flag.descriptor))
        interruption.cancel(statement: second)
        #expect(interruption.isCancelled(statement: second))
        #expect(Polling.isReadable(interruption.flag.descriptor))
    }

    @Test func nextStatementBeginsUncancelled() throws {
        let interruption = try Interruption()
        interruption.cancel(statement: interruption.begin())
        let next = interruption.begin()
        #expect(!interruption.isCancelled(statement: next))
        #expect(!Polling.isReadable(interruption.flag.descriptor))
    }
}

@Suite struct WordsTests {
    @Test func wordsOfLibpqBecomeOneLineWithoutItsSource() {
        let words = "FATAL:  28P01: no\n\thint here\nLOCATION:  auth_failed, auth.c:1\n"
        #expect(words.oneLine == "FATAL:  28P01: no hint here")
    }

    @Test func codeIsFoundInVerboseWords() {
        #expect(SQLState(inVerboseMessage: "a\nb failed: FATAL:  28P01: no entry: x") == .other("28P01"))
        #expect(SQLState(inVerboseMessage: "failed: FATAL:  57P03: starting") == .cannotConnectNow)
        #expect(SQLState(inVerboseMessage: "connection refused") == nil)
    }

    @Test(arguments: [
        ("could not write init file", false), ("could not find tuple for index 5", true),
    ])
    func failureToWriteIsNoDamage(message: String, isDamage: Bool) {
        let error = PostgresError.connection(.init(kind: .unreachable, message: message, sqlState: .other("XX000")))
        #expect(error.isDamage == isDamage)
    }

    @Test func secretsAreTakenOutOfWords() throws {
        let target = ConnectionTarget(settings: [], secrets: ["hunter2", ""])
        #expect(target.redacting("x hunter2 y hunter2") == "x *** y ***")
    }

    @Test(arguments: [
        ("postgresql://u@a,b/d", "primary"), ("postgresql://u@a,b/d?target_session_attrs=any", "any"),
    ])
    func standbyIsNotConnectedToUnlessTheStringSaysSo(conninfo: String, wanted: String) throws {
        let targets = try ConnectionTarget.all(of: PostgresConfiguration(conninfo))
        #expect(targets.count == 2)
        for target in targets {
            #expect(target.settings.contains { $0 == ("target_session_attrs", wanted) })
        }
    }

    @Test func hostsAreTakenApartWithTheirPorts() throws {
        let configuration = PostgresConfiguration("postgresql://u@a:1,b:2,c:3/d?target_session_attrs=read-write")
        let targets = try ConnectionTarget.all(of: configuration).map { target in
            Dictionary(uniqueKeysWithValues: target.settings.map { ($0.keyword, $0.value) })
        }
        #expect(targets.map { $0["host"] } == ["a", "b", "c"])
        #expect(targets.map { $0["port"] } == ["1", "2", "3"])
        #expect(targets.allSatisfy { $0["target_session_attrs"] == "read-write" })
    }

    @Test func hostsShareTheTimeThatIsLeft() {
        let now = ContinuousClock.now
        func end(of count: Int, until deadline: Duration?) -> Duration {
            now.duration(
                to: ConnectionTarget.end(of: count, within: .seconds(10), until: deadline.map { now + $0 }, now: now))
        }
        #expect(end(of: 2, until: .seconds(5)) == .milliseconds(2_500))
        #expect(end(of: 1, until: .seconds(5)) == .seconds(5))
        #expect(end(of: 2, until: .seconds(60)) == .seconds(10))
        #expect(end(of: 3, until: nil) == .seconds(10))
        #expect(end(of: 2, until: .zero) == .zero)
    }
}
