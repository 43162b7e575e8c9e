import Crypto
import FoundationEssentials
import SystemPackage

extension NginxServer {
    /// The limits of its clients.
    struct Limits {
        var rate: Int?
        var connections: (count: Int, status: Int)?
        var secret: String?
    }

    /// A path with a signature that is valid until a time, in seconds since 1970: without a signature there is 403, and
    /// after that time 410.
    public static func signed(_ path: String, expires: Int, secret: String) -> String {
        let digest = Data(Insecure.MD5.hash(data: Data("\(expires)\(path) \(secret)".utf8))).base64EncodedString()
        let signature = digest.replacing("+", with: "-").replacing("/", with: "_").prefix { $0 != "=" }
        return "\(path)?signature=\(signature)&expires=\(expires)"
    }

    static func text(
        _ place: RealServer.Place,
        root: FilePath,
        _ certificates: TestCertificates,
        _ limits: Limits,
        serverDirectives: String
    ) -> String {
        // If root started it, its workers would become another user, which cannot enter directories of mode 0700.
        let user = RealServer.isRoot ? "user root;" : ""
        let directory = place.directory
        return """
            \(user)
            daemon off;
            worker_processes 1;
            pid \(directory)/nginx.pid;
            error_log stderr notice;
            events { worker_connections 4096; }
            http {
                log_format requests '$request_uri\t$http_range\t$status\t$body_bytes_sent\t$connection';
                access_log /dev/stdout requests;
                client_body_temp_path \(directory)/body;
                proxy_temp_path \(directory)/proxy;
                fastcgi_temp_path \(directory)/fastcgi;
                uwsgi_temp_path \(directory)/uwsgi;
                scgi_temp_path \(directory)/scgi;
                default_type application/octet-stream;
                sendfile on;
                tcp_nopush on;
                keepalive_requests 1000000;
                limit_conn_zone $server_addr zone=connections:64k;
                server {
                    listen 127.0.0.1:\(place.port) backlog=4096;
                    listen 127.0.0.1:\(place.securePort) ssl http2 backlog=4096;
                    ssl_certificate \(certificates.certificateFile(.trusted));
                    ssl_certificate_key \(certificates.keyFile(.trusted));
                    root "\(root)";
                    limit_rate \(limits.rate ?? 0);
                    \(limits.connections.map { "limit_conn connections \($0.count); limit_conn_status \($0.status);" } ?? "")
                    \(limits.secret.map(signing) ?? "")
                    \(serverDirectives)
                }
            }
            """
    }

    private static func signing(_ secret: String) -> String {
        """
        secure_link $arg_signature,$arg_expires;
        secure_link_md5 "$secure_link_expires$uri \(secret)";
        if ($secure_link = "") { return 403; }
        if ($secure_link = "0") { return 410; }
        """
    }
}
