import NIOCore
import NIOSSL
import SystemPackage

/// The TLS of a scripted origin.
enum OriginTLS {
    /// The context of its listener.
    static func context(
        _ certificates: TestCertificates,
        identity: TestCertificates.Identity,
        clients: ScriptedOrigin.ClientCertificates,
        transport: ScriptedOrigin.Transport
    ) throws -> NIOSSLContext {
        let chain = try NIOSSLCertificate.fromPEMFile(certificates.certificateFile(identity).string)
        let key = try NIOSSLPrivateKey(file: certificates.keyFile(identity).string, format: .pem)
        var configuration = TLSConfiguration.makeServerConfiguration(
            certificateChain: chain.map { .certificate($0) },
            privateKey: .privateKey(key)
        )
        configuration.applicationProtocols = transport.wire.version == .http2 ? ["h2", "http/1.1"] : ["http/1.1"]
        // A client that keeps an idle connection does not answer the closing alert.
        configuration.shutdownTimeout = .milliseconds(500)
        switch clients {
        case .ignored:
            break
        case .asked:
            configuration.certificateVerification = .optionalVerification
        case .required:
            configuration.certificateVerification = .noHostnameVerification
        }
        if clients != .ignored { configuration.trustRoots = .file(certificates.clientCAFile.string) }
        return try NIOSSLContext(configuration: configuration)
    }
}
