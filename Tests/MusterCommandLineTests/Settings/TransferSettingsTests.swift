import MusterAPI
import MusterCoordinator
import MusterCore
import Testing

@testable import MusterCommandLine

@Suite("Settings of transfers")
struct TransferSettingsTests {
    private func transfers(
        _ arguments: [SettingName: [String]] = [:],
        environment: [String: String] = [:]
    ) throws -> TransferSettings {
        try Settings(command: "add", arguments: arguments, configuration: nil, environment: environment)
            .transfers(base: "/base")
    }

    /// The message of the refusal.
    private func refusal(_ arguments: [SettingName: [String]]) throws -> String {
        do {
            _ = try transfers(arguments)
            return "accepted"
        } catch CommandFailure.usage(let text) {
            return text
        }
    }

    @Test func receiversOfAPasswordAreNamedWhereThereAreSeveral() throws {
        let settings = try transfers([.user: ["me:secret"]])
        let line = try #require(settings.sharing(["b.org", "a.org"]))
        #expect(line.hasPrefix("note: user and password of --user are sent to all hosts of the list: a.org, b.org; "))
        #expect(!line.contains("secret") && line.contains("--netrc"))
        #expect(settings.sharing(Set((1...9).map { "h\($0)" }))?.contains("h5 and 4 more") == true)
        #expect(settings.sharing(["a.org"]) == nil)
        #expect(try transfers().sharing(["b.org", "a.org"]) == nil)
    }

    @Test func nothingSaidIsNothingSent() throws {
        let settings = try transfers()
        #expect(settings.isEmpty)
        var request = GroupRequest(name: "g")
        settings.apply(to: &request)
        #expect(request == GroupRequest(name: "g"))
    }

    @Test func everyOptionArrivesInItsPlace() throws {
        let settings = try transfers([
            .header: ["Authorization: env:TOKEN", "X-Key:file:keys/one"], .proxy: ["file:/p"], .cookie: ["a=b=c"],
            .cookieFile: ["jar"], .user: ["me:env:PASSWORD"], .netrc: ["/n"], .caFile: ["ca.pem"],
            .certificate: ["c.pem"], .key: ["/k.pem"], .knownHosts: ["hosts"], .privateKey: ["id"],
            .httpVersion: ["1.1"], .locationTrusted: ["true"], .decode: ["true"], .ifExists: ["rename"],
            .keepTime: ["true"],
            .suggestedNames: ["true"],
            .reuse: ["off"], .acceptUnframed: ["true"],
            .validators: ["sizeAndDigest"], .resolver: ["https://r.example/fresh?key=k"],
        ])
        let fetch = try #require(settings.fetch)
        #expect(fetch.headers == ["Authorization": Secret("env:TOKEN"), "X-Key": Secret("file:/base/keys/one")])
        #expect(fetch.proxy == Secret("file:/p") && fetch.cookies == ["a": Secret("b=c")])
        #expect(fetch.cookieFile == "/base/jar" && fetch.netrc == "/n" && fetch.caFile == "/base/ca.pem")
        #expect(fetch.credentials == .init(user: "me", password: Secret("env:PASSWORD")))
        #expect(fetch.clientCertificate == .init(certificate: "/base/c.pem", key: "/k.pem"))
        #expect(fetch.knownHosts == "/base/hosts" && fetch.privateKey == "/base/id" && fetch.httpVersion == .http1)
        #expect(fetch.locationTrusted == true && fetch.decode == true)
        #expect(settings.policy?.ifExists == .rename && settings.policy?.validators == .sizeAndDigest)
        #expect(settings.policy?.keepModificationTime == true && settings.policy?.names == .suggested)
        #expect(settings.policy?.reuse == false && settings.policy?.acceptUnframed == true)
        #expect(settings.resolver?.url == "https://r.example/fresh?key=k")
    }

    @Test func headersStandOnLinesOfTheirOwnInTheEnvironment() throws {
        let settings = try transfers(environment: ["MUSTER_HEADER": "Accept: text/plain, text/html\nX-A: 1"])
        #expect(settings.fetch?.headers == ["Accept": Secret("text/plain, text/html"), "X-A": Secret("1")])
        let given = try transfers([.header: ["X-B: 2"]], environment: ["MUSTER_HEADER": "X-A: 1"])
        #expect(given.fetch?.headers == ["X-B": Secret("2")], "the command line wins")
    }

    @Test func aPasswordIsEmptyOnlyWhereThatIsSaid() throws {
        let credentials = try transfers([.user: ["me:"]]).fetch?.credentials
        #expect(credentials?.user == "me" && credentials?.password.form == .value(""))
        #expect(try transfers([.user: ["me:a:b"]]).fetch?.credentials?.password == Secret("a:b"))
        #expect(try refusal([.user: ["me"]]).contains("--user has no password"))
    }

    /// `get` is the worker: a file that it can't read would fail each task separately.
    @Test(arguments: [
        (SettingName.header, "X: file:gone", "file:/base/gone must name a file that can be read here (No such"),
        (.user, "me:file:/tmp", "(it is a directory)"), (.netrc, "/tmp", "(it is a directory)"),
        (.header, "X: file:/etc/passwd", ""),
    ])
    func filesOfSecretsAreLookedAtBeforehand(name: SettingName, value: String, reason: String) throws {
        let settings = try Settings(command: "get", arguments: [name: [value]], configuration: nil, environment: [:])
        var told = ""
        do { try settings.checkFiles(base: "/base") } catch .usage(let text) { told = text } catch {}
        #expect(reason.isEmpty ? told.isEmpty : told.contains(reason), "\(told)")
    }

    @Test func authoritiesOfTheEnvironmentAreTrustedUnlessOthersAreNamed() {
        var settings = TransferSettings()
        settings.followAuthorities(of: ["SSL_CERT_FILE": ""], base: "/home/me")
        #expect(settings.fetch == nil)
        settings.followAuthorities(of: ["SSL_CERT_FILE": "ca.pem"], base: "/home/me")
        #expect(settings.fetch?.caFile == "/home/me/ca.pem")
        settings.followAuthorities(of: ["SSL_CERT_FILE": "/other.pem"], base: "/home/me")
        #expect(settings.fetch?.caFile == "/home/me/ca.pem")
    }

    @Test func theEnvironmentsProxiesAreUsedUnlessAProxyIsNamed() throws {
        let environment = ["http_proxy": "http://p:1", "no_proxy": "*", "ALL_PROXY": "", "HTTP_PROXY": "http://q:1"]
        var settings = try transfers()
        #expect(try settings.followProxies(of: environment) == ["http_proxy", "no_proxy"])
        #expect(settings.fetch?.proxy == Secret("environment"))
        for proxy in ["direct", "http://other:1"] {
            var named = try transfers([.proxy: [proxy]])
            #expect(try named.followProxies(of: environment).isEmpty && named.fetch?.proxy == Secret(proxy))
        }
        var without = try transfers()
        #expect(try without.followProxies(of: ["no_proxy": "*"]).isEmpty && without.fetch == nil)
        #expect(
            try without.followProxies(of: ["all_proxy": "localhost:3128"]) == ["all_proxy"],
            "a scheme need not be there")
    }

    @Test(arguments: [
        "http://me:hush#hush@p:1", "http://me:hush hush@p:1", " http://hush:1", "foo://hush", "http://me:hush@p:port",
    ])
    func aVariableThatNamesNoProxyIsRefusedWithoutBeingShown(value: String) throws {
        var settings = try transfers()
        var text = "accepted"
        do {
            _ = try settings.followProxies(of: ["https_proxy": value])
        } catch {
            if case .usage(let reason) = error { text = reason }
        }
        #expect(text.contains("https_proxy") && text.contains("http://HOST:PORT") && !text.contains("hush"))
    }

    @Test(arguments: [
        ([SettingName.header: ["hush"]], "NAME: VALUE"), ([.header: ["Host: hush"]], "set by Muster itself"),
        ([.header: ["A: hush", "a: hush"]], "given twice"), ([.cookie: ["hush"]], "NAME=VALUE"),
        ([.cookie: ["a=hush", "a=hush"]], "given twice"), ([.cookie: ["a=hush;b"]], "cookie"),
        ([.certificate: ["c.pem"]], "--key"), ([.key: ["k.pem"]], "--certificate"),
        ([.user: ["hu\u{1}sh:hush"]], "control characters"), ([.httpVersion: ["3"]], "must be one of 1.1"),
        ([.ifExists: ["overwrite"]], "verify, fail, replace, rename"), ([.validators: ["lax"]], "strict"),
        ([.resolver: ["ftp://r.example/hush"]], "http or https"), ([.resolver: ["https://u:hush@r/"]], "password"),
    ])
    func mistakesAreRefusedWithoutShowingASecret(arguments: [SettingName: [String]], word: String) throws {
        let text = try refusal(arguments)
        #expect(text.contains(word), "\(text)")
        #expect(!text.contains("hush"), "\(text)")
    }

    @Test func networksAreListedOnTheCommandLineAndInTheEnvironment() throws {
        func ranges(_ arguments: [SettingName: [String]], _ environment: [String: String] = [:]) throws -> [String] {
            try Settings(command: "serve", arguments: arguments, configuration: nil, environment: environment)
                .coordinator(listen: ListenAddress(host: "0.0.0.0", port: 0)).allowedAddresses.map(\.description)
        }
        #expect(try ranges([:]).isEmpty)
        #expect(try ranges([.allowAddress: ["10.0.0.0/8, fd00::/8", "192.168.1.7"]]).count == 3)
        #expect(try ranges([:], ["MUSTER_ALLOW_ADDRESS": "10.0.0.0/8,fd00::/8"]) == ["10.0.0.0/8", "fd00::/8"])
        #expect(throws: CommandFailure.self) { try ranges([.allowAddress: ["example.org"]]) }
    }

    @Test func machineThatListensToOthersIsAskedByItsOwnNameToo() throws {
        func hosts(_ listen: String) throws -> [String] {
            try Settings(command: "serve", arguments: [.host: ["proxy.test"]], configuration: nil, environment: [:])
                .coordinator(listen: ListenAddress(host: listen, port: 0)).hosts
        }
        #expect(try hosts("127.0.0.1") == ["proxy.test"])
        #expect(try hosts("0.0.0.0") == ["proxy.test"] + MachineName.hosts)
        #expect(MachineName.hosts(of: "box") == ["box"])
        #expect(MachineName.hosts(of: "box.example.org") == ["box.example.org", "box"])
        #expect(MachineName.hosts(of: "bad name").isEmpty && MachineName.hosts(of: "").isEmpty)
    }

    @Test func waitsAfterFailuresAreBounded() throws {
        func waits(_ arguments: [SettingName: [String]]) throws -> (Duration, Duration) {
            let settings = try Settings(command: "serve", arguments: arguments, configuration: nil, environment: [:])
            let configuration = try settings.coordinator(listen: ListenAddress(host: "127.0.0.1", port: 0))
            return (configuration.retryBase, configuration.retryMaximum)
        }
        #expect(try waits([:]) == (.seconds(1), .seconds(300)))
        #expect(try waits([.retryBase: ["50ms"], .retryMaximum: ["2s"]]) == (.milliseconds(50), .seconds(2)))
        for mistake in [
            [SettingName.retryBase: ["10s"], .retryMaximum: ["1s"]], [.retryBase: ["0s"]], [.retryMaximum: ["2h"]],
        ] {
            #expect(throws: CommandFailure.self) { try waits(mistake) }
        }
    }

    @Test func triesAreBoundedAndCountForUnreachedOriginsToo() throws {
        func tries(_ texts: [String]) throws -> [Int32] {
            let settings = try Settings(
                command: "serve", arguments: [.tries: texts], configuration: nil, environment: [:])
            let configuration = try settings.coordinator(listen: ListenAddress(host: "127.0.0.1", port: 0))
            return [configuration.attempts, configuration.unreachedAttempts]
        }
        #expect(try tries([]) == [Limits.attempts, Limits.attempts])
        #expect(try tries(["20"]) == [20, 20])
        for mistake in ["0", "101", "many"] {
            #expect(throws: CommandFailure.self) { try tries([mistake]) }
        }
    }

    @Test func anotherPolicyMakesAnotherRequestAndAnotherTokenDoesNot() throws {
        func identity(_ transfers: TransferSettings, fetch: FetchOptions? = nil) throws -> String {
            var identity = RequestIdentity()
            identity.add(try TaskSpecification(urls: ["https://e.org/a"]), fetch: fetch)
            identity.add(transfers.policy, decodes: transfers.fetch?.decode == true)
            return identity.text
        }
        var own = FetchOptions()
        own.httpVersion = .http1
        let plain = try identity(TransferSettings())
        let others = [
            try identity(try transfers([.ifExists: ["replace"]])), try identity(TransferSettings(), fetch: own),
        ]
        #expect(Set(others + [plain]).count == 3)
        #expect(try identity(try transfers([.header: ["A: 1"]])) == plain)
    }
}
