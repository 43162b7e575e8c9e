import CLibcurl
import Glibc

/// Initializes libcurl once for the process; a `static let` is Swift's own "exactly once".
enum CurlGlobal {
    static let initialized: Bool = {
        // libcurl reads a host name in the locale of the program (libidn2), and "C" has no letters beyond ASCII.
        if setlocale(LC_CTYPE, "C.UTF-8") == nil { setlocale(LC_CTYPE, "") }
        return muster_curl_global_init() == CURLE_OK
    }()
}

/// The owner of one `CURL *`, for one transfer on one loop thread. The multi handle keeps connections and resolved names;
/// TLS sessions are shared.
///
/// No handle is used for a second transfer: libcurl 7.88 keeps a freed pointer to the last header line of the previous
/// transfer, and writes through it when the next head begins with a folded line.
final class EasyHandle {
    fileprivate let pointer: UnsafeMutableRawPointer
    private let sessions: SharedSessions
    /// libcurl keeps only a reference to the header lists, so they live here as long as they are set.
    private var lines: UnsafeMutablePointer<curl_slist>?
    /// The first option that libcurl refused.
    private(set) var firstRefusal: CURLcode = CURLE_OK
    /// libcurl writes its messages here.
    private let messageBuffer = UnsafeMutablePointer<CChar>.allocate(capacity: EasyHandle.messageCapacity)

    private static let messageCapacity = Int(CURL_ERROR_SIZE)

    /// Nil if libcurl has no memory.
    init?(_ sessions: SharedSessions) {
        guard CurlGlobal.initialized, let pointer = curl_easy_init() else {
            messageBuffer.deallocate()
            return nil
        }
        self.pointer = pointer
        self.sessions = sessions
        messageBuffer.initialize(repeating: 0, count: Self.messageCapacity)
        note(muster_curl_set_pointer(pointer, CURLOPT_ERRORBUFFER, messageBuffer))
        note(muster_curl_set_pointer(pointer, CURLOPT_SHARE, sessions.pointer))
    }

    deinit {
        curl_easy_cleanup(pointer)
        curl_slist_free_all(lines)
        messageBuffer.deallocate()
    }

    /// libcurl's message about the last failure, or its name for the code.
    func message(for code: CURLcode) -> String {
        if messageBuffer[0] != 0 {
            let sentence = String(cString: messageBuffer)
            // The message ends in a blank where OpenSSL has no text.
            return sentence.last == " " ? String(sentence.dropLast()) : sentence
        }
        return curl_easy_strerror(code).map { String(cString: $0) } ?? ""
    }

    /// Pauses or resumes; data that libcurl held back may reach the callbacks before this returns.
    func pause(_ bits: Int32) -> CURLcode {
        curl_easy_pause(pointer, bits)
    }
}

// Options. A refusal is remembered instead of thrown, so that a long list of options reads as a list.
extension EasyHandle {
    private func note(_ code: CURLcode) {
        if firstRefusal == CURLE_OK { firstRefusal = code }
    }

    func set(_ option: CURLoption, _ value: Int) { note(muster_curl_set_long(pointer, option, value)) }
    func set(_ option: CURLoption, _ value: Bool) { note(muster_curl_set_long(pointer, option, value ? 1 : 0)) }
    func set(_ option: CURLoption, _ value: String) { note(muster_curl_set_string(pointer, option, value)) }
    /// Unsets a string option.
    func clear(_ option: CURLoption) { note(muster_curl_set_string(pointer, option, nil)) }

    func setOffset(_ option: CURLoption, _ value: Int64) {
        note(muster_curl_set_offset(pointer, option, curl_off_t(value)))
    }

    func setPointer(_ option: CURLoption, _ value: UnsafeMutableRawPointer?) {
        note(muster_curl_set_pointer(pointer, option, value))
    }

    /// Sets the lines of the list option in place of the previous ones. A handle has at most one list option.
    func set(_ option: CURLoption, _ texts: [String]) {
        let old = lines
        lines = nil
        for text in texts {
            guard let longer = curl_slist_append(lines, text) else {
                note(CURLE_OUT_OF_MEMORY)
                break
            }
            lines = longer
        }
        note(muster_curl_set_list(pointer, option, lines))
        curl_slist_free_all(old)
    }

    func onWrite(_ callback: curl_write_callback?) {
        note(muster_curl_set_write_callback(pointer, CURLOPT_WRITEFUNCTION, callback))
    }

    func onHeader(_ callback: curl_write_callback?) {
        note(muster_curl_set_write_callback(pointer, CURLOPT_HEADERFUNCTION, callback))
    }

    func onRead(_ callback: curl_read_callback?) { note(muster_curl_set_read_callback(pointer, callback)) }
    func onSeek(_ callback: curl_seek_callback?) { note(muster_curl_set_seek_callback(pointer, callback)) }
    func onPrerequest(_ callback: curl_prereq_callback?) { note(muster_curl_set_prereq_callback(pointer, callback)) }

    func onProgress(_ callback: curl_xferinfo_callback?) { note(muster_curl_set_progress_callback(pointer, callback)) }

    func onOpenSocket(_ callback: curl_opensocket_callback?) {
        note(muster_curl_set_opensocket_callback(pointer, callback))
    }

    func onCloseSocket(_ callback: curl_closesocket_callback?) {
        note(muster_curl_set_closesocket_callback(pointer, callback))
    }
}

// libcurl's information about the transfer so far.
extension EasyHandle {
    func integer(_ info: CURLINFO) -> Int {
        var value = 0
        return muster_curl_get_long(pointer, info, &value) == CURLE_OK ? value : 0
    }

    func offset(_ info: CURLINFO) -> Int64 {
        var value: curl_off_t = 0
        return muster_curl_get_offset(pointer, info, &value) == CURLE_OK ? Int64(value) : 0
    }

    func string(_ info: CURLINFO) -> String {
        var value: UnsafePointer<CChar>?
        guard muster_curl_get_string(pointer, info, &value) == CURLE_OK, let value else { return "" }
        return String(cString: value)
    }

    /// The pointer that was set as CURLOPT_PRIVATE.
    fileprivate static func userPointer(of pointer: UnsafeMutableRawPointer) -> UnsafeMutableRawPointer? {
        var value: UnsafeMutableRawPointer?
        return muster_curl_get_pointer(pointer, CURLINFO_PRIVATE, &value) == CURLE_OK ? value : nil
    }
}

/// The TLS sessions that the transfers of a loop share; otherwise each handle would keep its own. ftps servers want the
/// session of the control connection to be resumed for data connections. It belongs to one loop thread, so it needs no
/// lock.
final class SharedSessions {
    fileprivate let pointer: UnsafeMutableRawPointer

    /// Nil if libcurl has no memory.
    init?() {
        guard CurlGlobal.initialized, let pointer = curl_share_init() else { return nil }
        self.pointer = pointer
        guard muster_curl_share_sessions(pointer) == CURLSHE_OK else {
            curl_share_cleanup(pointer)
            return nil
        }
    }

    deinit {
        curl_share_cleanup(pointer)
    }
}

/// The owner of one `CURLM *`.
///
/// Unchecked, because only `wake()` is called by other threads than the loop's, which libcurl allows at any time while
/// the handle lives (curl_multi_wakeup), and the pointer never changes.
final class MultiHandle: @unchecked Sendable {
    private let pointer: UnsafeMutableRawPointer
    /// The sockets of its connections, for the loop's thread; all are closed before this object is freed.
    let sockets = OpenSockets()

    /// Nil if libcurl has no memory or no descriptors.
    init?() {
        guard CurlGlobal.initialized, let pointer = curl_multi_init() else { return nil }
        self.pointer = pointer
    }

    deinit {
        curl_multi_cleanup(pointer)
    }

    func set(_ option: CURLMoption, _ value: Int) {
        muster_curl_multi_set_long(pointer, option, value)
    }

    func add(_ easy: EasyHandle) -> CURLMcode {
        curl_multi_add_handle(pointer, easy.pointer)
    }

    func remove(_ easy: EasyHandle) {
        curl_multi_remove_handle(pointer, easy.pointer)
    }

    func perform() {
        var running: Int32 = 0
        curl_multi_perform(pointer, &running)
    }

    /// Waits for a socket, for libcurl's own timers, for `wake()`, or for the given time.
    func poll(milliseconds: Int32) {
        curl_multi_poll(pointer, nil, 0, milliseconds, nil)
    }

    /// Ends the current or the next `poll`; the one call that may come from any thread.
    func wake() {
        curl_multi_wakeup(pointer)
    }

    /// The next transfer that libcurl is done with: its CURLOPT_PRIVATE pointer and its result.
    func nextCompletion() -> (user: UnsafeMutableRawPointer, result: CURLcode)? {
        var left: Int32 = 0
        while let message = curl_multi_info_read(pointer, &left) {
            guard message.pointee.msg == CURLMSG_DONE, let easy = message.pointee.easy_handle,
                let user = EasyHandle.userPointer(of: easy)
            else { continue }
            return (user, muster_curl_message_result(message))
        }
        return nil
    }
}
