import Subprocess
public import SystemPackage

/// The certificate authorities and certificates of a test process, made by `openssl` when the first test asks for them.
public final class TestCertificates: Sendable {
    /// What an origin shows to its clients (row 36).
    public enum Identity: String, Sendable, Hashable, CaseIterable {
        /// A certificate for 127.0.0.1 and `localhost`, from the authority of ``TestCertificates/caFile``.
        case trusted
        /// The same, from another authority.
        case otherAuthority = "stranger"
        /// The same, from the right authority, but it ended yesterday.
        case expired
        /// From the right authority, for another host.
        case wrongHost = "elsewhere"
        /// Signed by itself.
        case selfSigned = "self"
    }

    private let directory: TemporaryDirectory

    /// The certificates of this process.
    public static func shared() async throws -> TestCertificates {
        try await sharedStart.value
    }

    private static let sharedStart = Task { try await TestCertificates() }

    /// There is no `openssl`, or it failed.
    public struct Failed: Error, Sendable, Hashable {
        /// What it printed.
        public let output: String
    }

    private init() async throws {
        self.directory = try TemporaryDirectory()
        let result = try await Subprocess.run(
            .path("/bin/sh"),
            arguments: ["-ec", Self.script, "muster-test-certificates"],
            workingDirectory: directory.path,
            output: .string(limit: 1 << 20),
            error: .combinedWithOutput
        )
        guard result.terminationStatus.isSuccess else { throw Failed(output: result.standardOutput) }
    }

    /// The authority behind ``Identity/trusted``, ``Identity/expired`` and ``Identity/wrongHost``.
    public var caFile: FilePath { file("ca.pem") }
    /// The authority behind ``Identity/otherAuthority``.
    public var otherCAFile: FilePath { file("other-ca.pem") }
    /// The authority behind ``clientCertificateFile`` (row 38).
    public var clientCAFile: FilePath { file("client-ca.pem") }
    /// A client's certificate.
    public var clientCertificateFile: FilePath { file("client.pem") }
    /// Its private key, without a passphrase.
    public var clientKeyFile: FilePath { file("client.key") }
    /// A client's certificate from an authority that no origin trusts.
    public var strangeClientCertificateFile: FilePath { file("strange-client.pem") }
    /// Its private key.
    public var strangeClientKeyFile: FilePath { file("strange-client.key") }

    /// The certificate of an identity.
    public func certificateFile(_ identity: Identity) -> FilePath { file("\(identity.rawValue).pem") }
    /// Its private key.
    public func keyFile(_ identity: Identity) -> FilePath { file("\(identity.rawValue).key") }
    /// Its certificate and its private key in one file, as some servers want it.
    public func bundleFile(_ identity: Identity) -> FilePath { file("\(identity.rawValue)-bundle.pem") }

    private func file(_ name: String) -> FilePath { directory.path.appending(name) }

    private static let script = """
        key() { openssl ecparam -name prime256v1 -genkey -noout -out "$1.key"; }
        authority() { # name
            key "$1"
            openssl req -x509 -new -key "$1.key" -sha256 -days 30 -subj "/CN=muster test $1" -out "$1.pem" \
                -addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign
        }
        serial=1
        leaf() { # name, authority, days, subject alternative name
            key "$1"
            serial=$((serial + 1))
            openssl req -new -key "$1.key" -subj "/CN=muster test $1" -out "$1.csr"
            printf 'subjectAltName=%s\\nbasicConstraints=CA:FALSE\\nextendedKeyUsage=serverAuth,clientAuth\\n' "$4" >"$1.ext"
            openssl x509 -req -in "$1.csr" -CA "$2.pem" -CAkey "$2.key" -set_serial "$serial" -sha256 -days "$3" \
                -extfile "$1.ext" -out "$1.pem"
            cat "$1.pem" "$1.key" >"$1-bundle.pem"
        }
        here=IP:127.0.0.1,DNS:localhost
        authority ca
        authority other-ca
        authority client-ca
        leaf trusted ca 30 $here
        leaf stranger other-ca 30 $here
        leaf expired ca -1 $here
        leaf elsewhere ca 30 DNS:elsewhere.test
        leaf client client-ca 30 DNS:client.test
        leaf strange-client other-ca 30 DNS:client.test
        key self
        openssl req -x509 -new -key self.key -sha256 -days 30 -subj "/CN=muster test self" -out self.pem \
            -addext subjectAltName=$here
        cat self.pem self.key >self-bundle.pem
        """
}
