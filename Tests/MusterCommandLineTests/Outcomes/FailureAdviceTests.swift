import ArgumentParser
import MusterAPI
import MusterCore
import Testing

@testable import MusterCommandLine

/// Every hint works when it is typed as it is printed.
@Suite("Advice for failures")
struct FailureAdviceTests {
    /// A failure of every kind, and of every detail that has its own advice.
    private static let failures: [TaskFailure] = {
        let statuses = [200, 400, 401, 403, 404, 407, 410, 429, 500, 503, 511].map { FailureKind.httpStatus($0) }
        let kinds: [FailureKind] = [
            .network, .tls, .dns, .proxy, .timeout, .tooSlow, .badRange, .changed, .digestMismatch, .sizeMismatch,
            .refusedAddress,
            .authentication, .notFound, .storageFull, .noSpace, .noPermission, .storage, .poison, .deadline,
            .unreadable,
        ]
        let details = [
            "", "it can't be read again to prove its end", "what came can't be gone on with",
            "what came can't be gone on with: it has no validator", "too many redirects",
            "unsupported scheme: a redirect leads to a scheme that is not followed: file",
            "a different file stands at a", "it is no regular file", "SSL certificate problem",
            "it was not done within 3 s of when it was added or retried", "the group was not done within 3 s",
            "env:KEY is not set", "env:KEY is not among the variables that this worker gives to the source",
            "file:/run/secrets/a b is no file that this worker gives to the source",
            "the response states no other validator, and is something else: size 9 became 5",
            "the response states no other validator, and 5 bytes, where the origin had 9 before",
        ]
        return (kinds + statuses).flatMap { kind in
            details.flatMap { detail in
                [nil, 407].map {
                    TaskFailure(
                        kind: kind, detail: detail, at: Samples.moment, status: $0, source: "https://example.org/a")
                }
            }
        }
    }()

    private func task(_ failure: TaskFailure) -> TaskDocument {
        var task = Samples.troubled("a b")
        (task.state, task.failure) = (.failed, failure)
        return task
    }

    /// The help texts of the commands whose options are named in advice.
    private static let help = Dictionary(
        uniqueKeysWithValues: ["get", "set", "add", "up", "serve", "work", "limit"].map {
            ($0, MusterProgram.help([$0], columns: 100))
        })

    /// The options in a text that one of these commands does not have.
    private func missing(_ text: String, in commands: [String]) -> [String] {
        text.matches(of: /--[a-z][a-z-]+/).map { String($0.output) }.filter { option in
            commands.contains { Self.help[$0]?.contains(option) != true }
        }
    }

    /// The advice for a TLS alert names the client's certificate only where that is what the peer rejects.
    @Test(arguments: [
        ("tlsv13 alert certificate required", "--certificate"), ("tlsv1 alert unknown ca", "--certificate"),
        ("tlsv1 alert protocol version", "scheme and port"), ("unable to set private key file: 'k.pem'", "--key names"),
        ("certificate has expired", "--ca-file"),
    ])
    func theSideWhoseCertificateIsRefusedIsTold(detail: String, text: String) throws {
        let advice = try #require(
            FailureAdvice.advice(TaskFailure(kind: .tls, detail: "TLS failed: \(detail)", at: Samples.moment)))
        #expect(advice.text.contains(text), "\(advice.text)")
    }

    /// An SFTP host has no certificate, and reads no headers.
    @Test(arguments: [(FailureKind.tls, "--known-hosts"), (.authentication, "--private-key")])
    func optionsOfSFTPAreNamedForItsFailures(kind: FailureKind, option: String) throws {
        for (url, isNamed) in [("sftp://h/f", true), ("https://h/f", false)] {
            let failure = TaskFailure(
                kind: kind, detail: "SSL peer certificate or SSH remote key was not OK", at: Samples.moment,
                source: url)
            #expect(try #require(FailureAdvice.advice(failure)).text.contains(option) == isNamed, "\(url)")
        }
    }

    /// A half-fetched file can be begun again with `--if-exists replace` or in another directory; where that option was given already, only
    /// another directory helps.
    @Test(arguments: [
        ("is something else: size 9 became 5", "--if-exists replace, or another directory"),
        ("5 bytes, where the origin had 9 before", "another directory"),
    ])
    func fileThatMayBeSomethingElseIsFetchedFromItsBeginning(detail: String, text: String) throws {
        let detail = "the response states no other validator, and \(detail)"
        let advice = try #require(
            FailureAdvice.advice(TaskFailure(kind: .network, detail: detail, at: Samples.moment, status: 200)))
        #expect(advice.text.contains(text), "\(advice.text)")
    }

    /// No option makes Muster follow such a redirect.
    @Test func aRedirectToAnotherSchemeIsNoMatterOfAddresses() throws {
        let advice = try #require(
            FailureAdvice.advice(
                TaskFailure(
                    kind: .refusedAddress,
                    detail: "unsupported scheme: a redirect leads to a scheme that is not followed: file",
                    at: Samples.moment, status: 302)))
        #expect(advice.text.hasSuffix("check the URL") && advice.place == nil, "\(advice)")
    }

    /// Another try would meet the same file on the way.
    @Test func noFurtherTryIsAdvisedForAFileOnTheWayToAPath() {
        let failure = TaskFailure(
            kind: .storage, detail: "the path leads through something that is no plain directory: file in file/q",
            at: Samples.moment)
        let lines = FailureAdvice.lines([task(failure)])
        #expect(lines.count == 1 && lines[0].contains("is on the way to that path"), "\(lines)")
    }

    @Test func adviceNamesOptionsThatTheCommandsHave() { Self.failures.forEach(checkOptions) }

    private func checkOptions(of failure: TaskFailure) {
        let task = task(failure)
        for line in FailureAdvice.lines([task]) { #expect(missing(line, in: ["get"]).isEmpty, "\(line)") }
        guard let advice = FailureAdvice.advice(failure) else { return }
        let commands: [String] =
            switch advice.place {
            case .asking: ["set"]
            case .making: ["add"]
            case .coordinator: ["up", "serve"]
            case .worker: ["up", "work"]
            case .deadline: ["limit"]
            case .task: ["add"]
            // Only `get` gives this advice.
            case nil: ["get"]
            }
        #expect(missing(advice.text, in: commands).isEmpty, "\(advice)")
        if let place = advice.place { #expect(missing(place.way("g"), in: commands).isEmpty, "\(place)") }
    }

    @Test func everyNamedCommandExists() { Self.failures.forEach(checkCommands) }

    private func checkCommands(for failure: TaskFailure) {
        let task = task(failure)
        let lines =
            FailureAdvice.groupHints([task], of: "my g")
            + [FailureAdvice.advice(failure).flatMap { FailureAdvice.way($0, group: "my g", key: "a b") }].compactMap {
                $0
            }
        for line in lines {
            for match in line.matches(of: /muster ([a-z]+)/) {
                #expect(MusterCommand.names.contains(String(match.output.1)), "\(line)")
            }
            // Commands that can be typed as they are printed have to parse.
            for match in line.matches(of: /muster ((?:retry|limit) 'my g'[^,;]*)/) {
                let words = match.output.1.replacing("'my g'", with: "g").replacing("'a b'", with: "k").split(
                    separator: " ")
                #expect(throws: Never.self, "\(line)") {
                    _ = try MusterCommand.parseAsRoot(words.map(String.init))
                }
            }
        }
    }

    @Test func aSecretThatIsNotGivenNamesTheOptionThatGivesIt() {
        let task = task(
            TaskFailure(
                kind: .authentication,
                detail: "env:KEY is not among the variables that this worker gives to the source",
                at: Samples.moment, source: "https://example.org/a"))
        #expect(
            FailureAdvice.groupHints([task], of: "g").last
                == "its worker gives it (muster up, muster work) with: --secret-variable KEY=https://example.org:443; and then: muster retry g"
        )
        #expect(FailureAdvice.lines([task]).last?.contains("--header 'NAME: env:VARIABLE'") == true)
    }
}
