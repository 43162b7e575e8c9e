import FoundationEssentials
import MusterCore
import Testing

struct FailureKindTests {
    static let table: [(FailureKind, String, FailureKind.Rule)] = [
        (.network, "network", .retry), (.tls, "tls", .nextSource), (.dns, "dns", .retry), (.proxy, "proxy", .retry),
        (.timeout, "timeout", .retry),
        (.tooSlow, "tooSlow", .retry), (.badRange, "badRange", .nextSource), (.changed, "changed", .startOver),
        (.digestMismatch, "digestMismatch", .startOver), (.sizeMismatch, "sizeMismatch", .nextSource),
        (.refusedAddress, "refusedAddress", .nextSource), (.authentication, "authentication", .nextSource),
        (.notFound, "notFound", .nextSource), (.storageFull, "storageFull", .returnChunk),
        (.noSpace, "noSpace", .setBack), (.noPermission, "noPermission", .setBack), (.storage, "storage", .giveUp),
        (.poison, "poison", .giveUp), (.deadline, "deadline", .giveUp), (.unreadable, "unreadable", .giveUp),
        (.httpStatus(503), "httpStatus(503)", .retry),
        (.httpStatus(418), "httpStatus(418)", .nextSource), (.httpStatus(100), "httpStatus(100)", .nextSource),
        (.httpStatus(999), "httpStatus(999)", .nextSource),
    ]

    @Test(arguments: table)
    func kindHasItsNameAndItsRule(kind: FailureKind, name: String, rule: FailureKind.Rule) throws {
        #expect(kind.rawValue == name)
        #expect(FailureKind(rawValue: name) == kind)
        #expect(kind.rule == rule)
        #expect(String(decoding: try JSONEncoder().encode([kind]), as: UTF8.self) == "[\"\(name)\"]")
        #expect(try JSONDecoder().decode([FailureKind].self, from: Data("[\"\(name)\"]".utf8)) == [kind])
    }

    @Test func refusedConnectionIsReportedInAFewWords() {
        let detail =
            "with a range and without one: not connected: Failed to connect to 127.0.0.1 port 80 after 0 ms: Couldn't connect to server"
        #expect(
            FailureKind.network.text(status: nil, source: nil, detail: detail, isDecided: true)
                == "connection failed: 127.0.0.1 port 80"
        )
        #expect(
            FailureKind.network.text(status: nil, source: "http://127.0.0.1/a", detail: detail, isDecided: true)
                == "connection failed: http://127.0.0.1/a")
        let refused = "not connected: Failed to connect to proxy.example port 3128 after 0 ms: Connection refused"
        #expect(
            FailureKind.network.text(status: nil, source: nil, detail: refused, isDecided: true)
                == "connection refused: proxy.example port 3128")
        #expect(
            FailureKind.network.text(status: nil, source: "http://127.0.0.1/a", detail: refused, isDecided: true)
                == "connection refused: proxy.example port 3128, for http://127.0.0.1/a")
        #expect(
            FailureKind.network.text(
                status: nil, source: nil, detail: "plainly: connection reset: by peer", isDecided: true)
                == "connection failed: plainly: connection reset: by peer")
    }

    @Test func pageInPlaceOfAFileIsNotReportedAsOK() {
        let page = FailureKind.httpStatus(200)
        #expect(page.title(status: 200, isDecided: true) == "not the file (status 200)")
        #expect(
            page.title(status: 200, isDecided: false) == "not known whether it is the file (status 200)",
            "a further try decides")
        #expect(
            page.text(
                status: 200, source: "http://a.example/f", detail: "a page of text/html in the place of the file",
                isDecided: true)
                == "not the file (status 200) from http://a.example/f: a page of text/html in the place of the file")
    }

    /// An answer came, so no connection has failed.
    @Test func answerThatMayBeSomethingElseIsNotReportedAsAFailedConnection() {
        let detail = "the response states no other validator, and is something else: size 9 became 5"
        #expect(
            FailureKind.network.text(status: 200, source: nil, detail: detail, isDecided: true)
                == "not the file (status 200): \(detail)")
        #expect(
            FailureKind.network.title(status: 200, isDecided: false, detail: detail)
                == "not known whether it is the file (status 200)")
        #expect(FailureKind.network.title(status: 200, isDecided: true) == "connection failed (status 200)")
    }

    @Test func detailThatRepeatsTheTitleIsShortened() {
        #expect(
            FailureKind.tooSlow.text(status: 206, source: nil, detail: "too slow: below 1024 bytes/s", isDecided: true)
                == "too slow (status 206): below 1024 bytes/s")
    }

    /// The scheme is wrong, not the address.
    @Test func redirectToAnotherSchemeIsReportedAsSuch() {
        let reason = "a redirect leads to a scheme that is not followed: file"
        #expect(
            FailureKind.refusedAddress.text(
                status: 302, source: "http://a.example/f", detail: "unsupported scheme: \(reason)", isDecided: true)
                == "unsupported scheme (status 302) from http://a.example/f: \(reason)")
        #expect(
            FailureKind.refusedAddress.text(
                status: nil, source: nil, detail: "the address 127.0.0.1 is not allowed", isDecided: true)
                == "address not permitted: the address 127.0.0.1 is not allowed")
    }

    @Test func aHostThatIsNotFoundIsNamedOnce() {
        let detail = "name not resolved: Could not resolve host: mirror.example"
        #expect(
            FailureKind.dns.text(status: nil, source: nil, detail: detail, isDecided: true)
                == "host not found: mirror.example")
        #expect(
            FailureKind.dns.text(status: nil, source: "http://mirror.example/a", detail: detail, isDecided: true)
                == "host not found from http://mirror.example/a")
        #expect(
            FailureKind.proxy.text(
                status: nil, source: "http://a.example/b", detail: "proxy failed: Could not resolve proxy: p.example",
                isDecided: true)
                == "proxy failed for http://a.example/b: Could not resolve proxy: p.example", "not the source's host")
    }

    @Test func tableHasEveryKind() {
        #expect(Set(Self.table.map(\.0.name)) == Set(FailureKind.Name.allCases))
        for name in FailureKind.Name.allCases where name != .httpStatus {
            #expect(FailureKind(rawValue: name.rawValue)?.name == name)
        }
    }

    @Test(
        arguments: [
            "", "Network", "networks", "httpStatus", "httpStatus()", "httpStatus(99)", "httpStatus(1000)",
            "httpStatus(-503)",
            "httpStatus(+503)", "httpStatus( 503)", "httpStatus(503", "httpStatus(5x3)", "httpStatus(503))",
        ])
    func otherNamesAreRefused(name: String) {
        #expect(FailureKind(rawValue: name) == nil)
        #expect(throws: DecodingError.self) {
            try JSONDecoder().decode([FailureKind].self, from: JSONEncoder().encode([name]))
        }
    }

    /// Rows 24 to 26 of the range contract.
    @Test(
        arguments: [
            (401, .authentication, .nextSource), (407, .authentication, .nextSource), (404, .notFound, .nextSource),
            (410, .notFound, .nextSource), (451, .notFound, .nextSource), (403, .httpStatus(403), .nextSource),
            (408, .httpStatus(408), .retry), (425, .httpStatus(425), .retry), (429, .httpStatus(429), .retry),
            (500, .httpStatus(500), .retry), (501, .httpStatus(501), .nextSource), (502, .httpStatus(502), .retry),
            (503, .httpStatus(503), .retry), (504, .httpStatus(504), .retry), (505, .httpStatus(505), .nextSource),
            (520, .httpStatus(520), .retry), (524, .httpStatus(524), .retry), (599, .httpStatus(599), .retry),
            (400, .httpStatus(400), .nextSource), (405, .httpStatus(405), .nextSource),
            (304, .httpStatus(304), .nextSource),
            (600, .httpStatus(600), .nextSource),
        ] as [(Int, FailureKind, FailureKind.Rule)]
    )
    func statusDecidesWhetherToTryAgain(status: Int, kind: FailureKind, rule: FailureKind.Rule) {
        #expect(FailureKind.status(status) == kind)
        #expect(FailureKind.status(status).rule == rule)
    }
}

/// Limits and expired URLs, by the kind and the status of a failure (range contract, rows 21 and 24).
struct FailureSignalTests {
    @Test(
        arguments: [
            (.httpStatus(429), 429, .certain), (.httpStatus(503), 503, .certain), (.httpStatus(503), nil, .certain),
            (.httpStatus(403), 403, .possible), (.httpStatus(400), 400, .possible), (.httpStatus(400), nil, .none),
            (.notFound, 404, .possible), (.network, nil, .possible),
            // The body of a successful answer was cut.
            (.network, 206, .possible),
            (.notFound, 410, .none), (.notFound, 451, .none), (.notFound, nil, .none), (.authentication, 401, .none),
            (.httpStatus(500), 500, .none), (.httpStatus(418), 418, .none), (.timeout, nil, .none),
            (.tooSlow, 206, .none), (.tls, nil, .none), (.changed, 206, .none), (.badRange, 200, .none),
        ] as [(FailureKind, Int?, FailureKind.LimitSignal)]
    )
    func limitsAreSignalledByRow24(kind: FailureKind, status: Int?, signal: FailureKind.LimitSignal) {
        #expect(kind.limitSignal(status: status) == signal)
    }

    @Test(
        arguments: [
            (.authentication, 401, true), (.httpStatus(403), 403, true), (.httpStatus(403), nil, true),
            (.notFound, 410, true),
            // A proxy's demand, a secret that could not be read, and a file that has never been there.
            (.authentication, 407, false), (.authentication, nil, false), (.notFound, 404, false),
            (.notFound, 451, false), (.notFound, nil, false), (.httpStatus(400), 400, false), (.network, nil, false),
            (.changed, 200, false), (.refusedAddress, nil, false),
        ] as [(FailureKind, Int?, Bool)]
    )
    func expiryIsToldByRow21(kind: FailureKind, status: Int?, isExpiry: Bool) {
        #expect(kind.isExpiry(status: status) == isExpiry)
    }

    @Test(arguments: [
        (429, 120), (503, 120), (401, 5), (409, 5), (410, 5), (451, 5), (403, 10), (404, 10), (407, 10), (200, 10),
        (nil, 10),
    ])
    func limitsLastAsLongAsTheirStatusTells(status: Int?, seconds: Int) {
        #expect(FailureKind.longestLimit(status: status) == .seconds(seconds))
    }

    /// These names go to the database.
    @Test func namesOfSignalsStay() {
        #expect(
            FailureKind.LimitSignal.allCases.map(\.rawValue) == ["none", "possible", "certain", "refuted", "unserved"])
    }

    @Test func kindsOfLimitsAndExpiriesNeverGiveUpTheTask() {
        for (kind, name, rule) in FailureKindTests.table {
            // A failure that may come from a limit or an old URL is never a reason to give up the task.
            guard kind.limitSignal(status: nil) != .none || kind.isExpiry(status: nil) else { continue }
            #expect(rule == .retry || rule == .nextSource, "\(name)")
        }
    }
}

struct StateTests {
    @Test func terminalStatesAreThoseThatNothingFollows() {
        #expect(Set(TaskState.allCases.filter(\.isTerminal)) == [.succeeded, .failed, .cancelled])
        #expect(Set(GroupState.allCases.filter(\.isTerminal)) == [.succeeded, .failed, .cancelled])
    }

    /// These names are in databases and in callers' programs.
    @Test func namesOfStatesStay() {
        #expect(
            TaskState.allCases.map(\.rawValue) == [
                "queued", "active", "paused", "finalizing", "succeeded", "failed", "cancelled",
            ]
        )
        #expect(GroupState.allCases.map(\.rawValue) == ["open", "sealed", "succeeded", "failed", "cancelled"])
        #expect(LeaseKind.allCases.map(\.rawValue) == ["fetch", "finalize", "purge", "resolve", "trial"])
    }
}
