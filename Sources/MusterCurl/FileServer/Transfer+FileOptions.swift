import CLibcurl
import Glibc

extension Transfer {
    /// What is wrong with a request for a server of files; nil if it can be sent.
    func complaint(_ scheme: FileScheme) -> String? {
        guard request.method == "GET", upload.isNone else {
            return "only GET without a body has a meaning for \(scheme)"
        }
        return scheme.complaint(about: request.url)
    }

    func setFileOptions(_ scheme: FileScheme) {
        easy.set(CURLOPT_FILETIME, true)
        // Only the begin is libcurl's: with an end too it would not tell the whole size.
        let first = request.range?.first ?? 0
        if first > 0, !request.readsToEnd { easy.setOffset(CURLOPT_RESUME_FROM_LARGE, first) }
        // A proxy of HTTP would be asked by HTTP otherwise, and answer by it.
        easy.set(CURLOPT_HTTPPROXYTUNNEL, true)
        // After some failures libcurl keeps a connection on which a reply is still to come, which the next transfer would
        // take for its own; see `keepConnection`.
        easy.set(CURLOPT_FORBID_REUSE, true)
        switch scheme {
        case .ftp, .ftps: setFTPOptions(isOverTLS: scheme == .ftps)
        case .sftp: setSSHOptions()
        }
    }

    private func setFTPOptions(isOverTLS: Bool) {
        let seconds = (request.firstByteTimeout.millisecondsForCurl + 999) / 1000
        easy.set(CURLOPT_SERVER_RESPONSE_TIMEOUT, seconds)
        // The address that a server states for the data connection may be anybody's; the connection goes to the server.
        easy.set(CURLOPT_FTP_SKIP_PASV_IP, true)
        // The whole path in one command: fewer round trips, and the answer is about the file and not a directory above it.
        easy.set(CURLOPT_FTP_FILEMETHOD, Int(CURLFTPMETHOD_NOCWD.rawValue))
        if request.readsToEnd, let first = request.range?.first {
            // libcurl asks for no size then, and cuts nothing where that says the end is; nor does it say where to begin.
            easy.set(CURLOPT_IGNORE_CONTENT_LENGTH, true)
            easy.set(CURLOPT_PREQUOTE, ["REST \(first)"])
        }
        if isOverTLS { easy.set(CURLOPT_USE_SSL, Int(CURLUSESSL_ALL.rawValue)) }
    }

    private func setSSHOptions() {
        // An empty name is a file that does not exist: without a file libcurl would trust everybody, with it nobody.
        easy.set(CURLOPT_SSH_KNOWNHOSTS, request.knownHostsFile ?? Self.ownKnownHostsFile ?? "/")
        var methods = CURLSSH_AUTH_PASSWORD | CURLSSH_AUTH_KEYBOARD
        if let key = request.privateKeyFile {
            easy.set(CURLOPT_SSH_PRIVATE_KEYFILE, key)
            methods |= CURLSSH_AUTH_PUBLICKEY
        }
        easy.set(CURLOPT_SSH_AUTH_TYPES, Int(methods))
        // libcurl does not compare the files of known hosts when it looks for a connection to use again, so that one which
        // another request trusted would serve this one.
        easy.set(CURLOPT_FRESH_CONNECT, true)
    }

    /// Called when the file has begun to come, so that commands and replies are in step.
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
