import FoundationEssentials
import MusterAPI
import MusterCore
import MusterCurl
import MusterTestSupport
import SystemPackage
import Testing

@testable import MusterWorker

@Suite struct RequestSettingsTests {
    private let secrets: SecretStore = {
        var grants = SecretGrants()
        for name in ["TOKEN", "SEMI", "NONE"] { grants.variables[name] = [.anyone] }
        grants.directories["/"] = [.anyone]
        return SecretStore(grants: grants, environment: { ["TOKEN": "t0p", "SEMI": "a; b"][$0] })
    }()

    private func request(
        _ options: FetchOptions,
        headers: [String: String] = [:],
        url: String = "https://127.0.0.1/f"
    ) throws -> TransferRequest {
        try RequestSettings(url: url, headers: headers, options: options, version: "7", secrets: secrets).request()
    }

    @Test func withoutOptionsTheDefaultsOfTheTableHold() throws {
        let request = try request(FetchOptions())
        #expect(request.userAgent == "muster/7")
        #expect(request.connectTimeout == .seconds(15))
        #expect(request.firstByteTimeout == .seconds(60))
        #expect(request.lowSpeed == LowSpeedLimit(bytesPerSecond: 1_024, over: .seconds(30)))
        #expect(request.maxRedirects == 10)
        #expect(request.allowedSchemes == ["http", "https"])
        #expect(request.proxy == .direct)
        #expect(request.deadline == nil)
    }

    @Test func fieldsOfTheSourceWinAndOwnOnesAreLeftOut() throws {
        var options = FetchOptions()
        options.headers = ["X-Token": Secret("env:TOKEN"), "x-key": Secret("group"), "Range": Secret("bytes=0-1")]
        let headers = try request(options, headers: ["X-Key": "task", "If-Range": "x", "USER-AGENT": "mine"])
        #expect(headers.originHeaders.fields.map(\.name).sorted() == ["USER-AGENT", "X-Key", "X-Token"])
        #expect(headers.originHeaders["X-Key"] == "task")
        #expect(headers.originHeaders["X-Token"] == "t0p")
        #expect(headers.headers.fields.isEmpty, "nothing of the caller's goes wherever redirects lead")
        #expect(!headers.trustsRedirects)
    }

    @Test func trustedRedirectsTakeOnlyWhatAnyoneMayReceive() throws {
        var grants = SecretGrants()
        grants.variables = ["TOKEN": [.anyone], "BOUND": [.origin("https://127.0.0.1:443")]]
        let secrets = SecretStore(grants: grants, environment: { ["TOKEN": "t0p", "BOUND": "b0und"][$0] })
        func request(_ name: String, trusted: Bool?) throws -> TransferRequest {
            var options = FetchOptions()
            options.headers = ["X-Token": Secret("env:\(name)")]
            options.locationTrusted = trusted
            return try RequestSettings(url: "https://127.0.0.1/f", options: options, version: "7", secrets: secrets)
                .request()
        }
        try #expect(request("TOKEN", trusted: true).trustsRedirects)
        try #expect(request("BOUND", trusted: nil).originHeaders["X-Token"] == "b0und")
        try #expect(request("BOUND", trusted: false).originHeaders["X-Token"] == "b0und")
        #expect(throws: SecretRefusal.self) { try request("BOUND", trusted: true) }
    }

    @Test func fieldsOfTheSourceAreTakenAsTheyAre() throws {
        // A resolver's answer must not be a way to the worker's secrets.
        try #expect(request(FetchOptions(), headers: ["X-Key": "env:TOKEN"]).originHeaders["X-Key"] == "env:TOKEN")
    }

    @Test func everyOptionReachesTheRequest() throws {
        let directory = try TemporaryDirectory()
        let path = { (name: String) in directory.path.appending(name).string }
        for name in ["jar", "netrc", "ca", "cert", "key", "hosts", "id"] {
            try Data().write(to: URL(filePath: path(name)))
        }
        var options = FetchOptions()
        options.proxy = Secret("http://proxy.example:3128")
        options.cookies = ["b": Secret("env:TOKEN"), "a": Secret("1")]
        options.cookieFile = path("jar")
        options.credentials = FetchOptions.Credentials(user: "me", password: Secret("env:TOKEN"))
        options.netrc = path("netrc")
        options.clientCertificate = FetchOptions.Certificate(certificate: path("cert"), key: path("key"))
        options.caFile = path("ca")
        options.knownHosts = path("hosts")
        options.privateKey = path("id")
        options.connectTimeoutSeconds = 3
        options.firstByteTimeoutSeconds = 4
        options.lowSpeedBytesPerSecond = 5
        options.lowSpeedSeconds = 6
        let request = try request(options)
        #expect(request.proxy == .url("http://proxy.example:3128"))
        #expect(request.cookies == "a=1; b=t0p")
        #expect(request.cookieFile == path("jar"))
        #expect(request.credentials == "me:t0p")
        #expect(request.netrcFile == path("netrc"))
        #expect(request.clientCertificate == ClientCertificate(certificatePath: path("cert"), keyPath: path("key")))
        #expect(request.caFile == path("ca"))
        #expect(request.knownHostsFile == path("hosts"))
        #expect(request.privateKeyFile == path("id"))
        #expect(request.connectTimeout == .seconds(3))
        #expect(request.firstByteTimeout == .seconds(4))
        #expect(request.lowSpeed == LowSpeedLimit(bytesPerSecond: 5, over: .seconds(6)))
        options.lowSpeedBytesPerSecond = 0
        try #expect(self.request(options).lowSpeed == nil)
    }

    @Test func wordsForProxiesAreNoURLs() throws {
        var options = FetchOptions()
        for (word, choice) in [("direct", ProxyChoice.direct), ("environment", .environment)] {
            options.proxy = Secret(word)
            try #expect(request(options).proxy == choice)
        }
        options.proxy = Secret("env:TOKEN")
        let settings = try RequestSettings(url: "http://a/", options: options, version: "7", secrets: secrets)
        #expect(settings.isProxied)
    }

    @Test func workersOwnAuthoritiesStandInForMissingOnes() throws {
        let settings = try RequestSettings(url: "https://a/", version: "7", caFile: "/etc/own.pem")
        #expect(settings.request().caFile == "/etc/own.pem")
    }

    @Test func secretThatCannotBeReadIsNamed() {
        var options = FetchOptions()
        options.headers = ["Authorization": Secret("env:NONE")]
        #expect(throws: SecretRefusal(reference: "env:NONE", reason: "is not set")) {
            try request(options)
        }
        options.headers = nil
        options.caFile = "/none/ca.pem"
        #expect(
            throws: SecretRefusal(
                reference: "file:/none/ca.pem", reason: "is no file that this worker gives to the source")
        ) {
            try request(options)
        }
        options.caFile = nil
        options.cookies = ["c": Secret("env:SEMI")]
        #expect(throws: SecretRefusal(reference: "the cookie c", reason: "has a semicolon in its value")) {
            try request(options)
        }
    }

    @Test(arguments: ["ftp", "ftps", "sftp"])
    func otherSchemesGoNowhereElse(_ scheme: String) throws {
        var options = FetchOptions()
        options.headers = ["X-Key": Secret("v")]
        options.cookies = ["a": Secret("1")]
        options.credentials = FetchOptions.Credentials(user: "me", password: Secret("pw"))
        let request = try request(options, headers: ["X-Other": "v"], url: "\(scheme)://127.0.0.1/f")
        #expect(request.allowedSchemes == [scheme])
        #expect(request.headers.fields.isEmpty && request.originHeaders.fields.isEmpty)
        #expect(request.cookies == nil)
        #expect(request.userAgent == nil)
        #expect(request.credentials == "me:pw")
    }

    @Test func unknownSchemesAreLeftToTheTransferToRefuse() throws {
        try #expect(request(FetchOptions(), url: "file:///etc/passwd").allowedSchemes == ["http", "https"])
    }

    @Test func offeredVersionFollowsTheOptionAndTheOriginsHistory() throws {
        func version(_ option: FetchOptions.HTTPVersion?, isFirst: Bool, fellBack: Bool) throws -> HTTPVersionPreference
        {
            var options = FetchOptions()
            options.httpVersion = option
            return try RequestSettings(url: "https://a/", options: options, version: "7")
                .request(isFirst: isFirst, fellBack: fellBack).httpVersion
        }
        try #expect(version(nil, isFirst: true, fellBack: false) == .http2OverTLS)
        try #expect(version(nil, isFirst: false, fellBack: false) == .http1)
        try #expect(version(nil, isFirst: true, fellBack: true) == .http1)
        try #expect(version(.http1, isFirst: true, fellBack: false) == .http1)
        try #expect(version(.http2, isFirst: false, fellBack: false) == .http2OverTLS)
        try #expect(version(.http2, isFirst: false, fellBack: true) == .http1)
        try #expect(version(.priorKnowledge, isFirst: false, fellBack: true) == .priorKnowledge)
    }

    @Test func onlyFilesMakeReadingBlock() {
        var options = FetchOptions()
        #expect(!RequestSettings.readsFiles(nil))
        options.headers = ["A": Secret("env:TOKEN")]
        options.proxy = Secret("direct")
        #expect(!RequestSettings.readsFiles(options))
        options.headers = ["A": Secret("file:/x")]
        #expect(RequestSettings.readsFiles(options))
        options = FetchOptions()
        options.netrc = "/x"
        #expect(RequestSettings.readsFiles(options))
    }

    @Test func nothingGivenInConfidenceIsRepeated() throws {
        var options = FetchOptions()
        options.headers = ["Authorization": Secret("Bearer abcdef"), "X-Short": Secret("a")]
        options.cookies = ["c": Secret("cookie-value")]
        options.credentials = FetchOptions.Credentials(user: "me", password: Secret("pass:word"))
        options.proxy = Secret("http://proxyuser:hunter22@proxy.example:3128")
        let settings = try RequestSettings(
            url: "https://a/",
            headers: ["X-Own": "task-value"],
            options: options,
            version: "7"
        )
        let shown = settings.withoutSecrets(
            "a Bearer abcdef b cookie-value c pass:word d http://proxyuser:hunter22@proxy.example e hunter22 f task-value"
        )
        #expect(shown == "a ••• b ••• c ••• d http://•••@proxy.example e ••• f •••")
    }
}
