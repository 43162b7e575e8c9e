import CLibcurl
import Glibc

extension Transfer {
    /// The reason why a request cannot be sent to a file server; nil if it can.
    func complaint(_ scheme: FileScheme) -> String? {
        guard request.method == "GET", upload.isNone else {
            return "only GET without a body has a meaning for \(scheme)"
        }
        return scheme.complaint(about: request.url)
    }

    func setFileOptions(_ scheme: FileScheme) {
        easy.set(CURLOPT_FILETIME, true)
        // libcurl gets only the start of the range: given an end too, it would not report the whole size.
        let first = request.range?.first ?? 0
        if first > 0, !request.readsToEnd { easy.setOffset(CURLOPT_RESUME_FROM_LARGE, first) }
        // Without a tunnel libcurl would send an HTTP proxy a request in HTTP, and get its response in HTTP.
        easy.set(CURLOPT_HTTPPROXYTUNNEL, true)
        // After some failures libcurl keeps a connection on which a reply is still to come; the next transfer would take
        // that reply for its own. See `keepConnection`.
        easy.set(CURLOPT_FORBID_REUSE, true)
        switch scheme {
        case .ftp, .ftps: setFTPOptions(isOverTLS: scheme == .ftps)
        case .sftp: setSSHOptions()
        }
    }

    private func setFTPOptions(isOverTLS: Bool) {
        let seconds = (request.firstByteTimeout.millisecondsForCurl + 999) / 1000
        easy.set(CURLOPT_SERVER_RESPONSE_TIMEOUT, seconds)
        // The address that a server states for the data connection may be any host's; the connection goes to the server.
        easy.set(CURLOPT_FTP_SKIP_PASV_IP, true)
        // The whole path in one command: fewer round trips, and the answer is about the file and not a directory above it.
        easy.set(CURLOPT_FTP_FILEMETHOD, Int(CURLFTPMETHOD_NOCWD.rawValue))
        if request.readsToEnd, let first = request.range?.first {
            // libcurl then does not ask for the size, and does not cut the file there. It does not send REST either.
            easy.set(CURLOPT_IGNORE_CONTENT_LENGTH, true)
            easy.set(CURLOPT_PREQUOTE, ["REST \(first)"])
        }
        if isOverTLS { easy.set(CURLOPT_USE_SSL, Int(CURLUSESSL_ALL.rawValue)) }
    }

    private func setSSHOptions() {
        // Without a known hosts file libcurl would trust every server. "/" cannot be read as a file, so libcurl trusts no server.
        easy.set(CURLOPT_SSH_KNOWNHOSTS, request.knownHostsFile ?? Self.ownKnownHostsFile ?? "/")
        var methods = CURLSSH_AUTH_PASSWORD | CURLSSH_AUTH_KEYBOARD
        if let key = request.privateKeyFile {
            easy.set(CURLOPT_SSH_PRIVATE_KEYFILE, key)
            methods |= CURLSSH_AUTH_PUBLICKEY
        }
        easy.set(CURLOPT_SSH_AUTH_TYPES, Int(methods))
        // libcurl ignores the known hosts file when it looks for a connection to reuse, so a connection that another
        // request trusted would serve this one.
        easy.set(CURLOPT_FRESH_CONNECT, true)
    }

    /// Called when the first bytes of the file arrive: commands and replies are in step then.
    func keepConnection(_ scheme: FileScheme) {
        switch scheme {
        case .ftp, .ftps: easy.set(CURLOPT_FORBID_REUSE, false)
        case .sftp: break
        }
    }

    private static var ownKnownHostsFile: String? {
        guard let home = getenv("HOME"), home.pointee != 0 else { return nil }
        return String(cString: home) + "/.ssh/known_hosts"
    }
}
