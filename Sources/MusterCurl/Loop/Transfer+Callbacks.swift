import CLibcurl
import Glibc
import MusterSystem

// The C side of the callbacks. Each gets the transfer that `LoopEngine` holds a reference to until the handle is removed.
extension Transfer {
    func setCallbacks() {
        let user = Unmanaged.passUnretained(self).toOpaque()
        easy.setPointer(CURLOPT_WRITEDATA, user)
        easy.setPointer(CURLOPT_HEADERDATA, user)
        easy.setPointer(CURLOPT_READDATA, user)
        easy.setPointer(CURLOPT_SEEKDATA, user)
        easy.setPointer(CURLOPT_PREREQDATA, user)
        easy.setPointer(CURLOPT_OPENSOCKETDATA, user)
        // A connection, and with it its socket, lives longer than the transfer that opened it.
        easy.setPointer(CURLOPT_CLOSESOCKETDATA, Unmanaged.passUnretained(sockets).toOpaque())
        easy.onWrite { bytes, size, count, user in
            Transfer.at(user)?.receiveBody(UnsafeRawBufferPointer(start: bytes, count: size * count)) ?? 0
        }
        easy.onHeader { bytes, size, count, user in
            Transfer.at(user)?.receiveHeader(UnsafeRawBufferPointer(start: bytes, count: size * count)) ?? 0
        }
        easy.onRead { bytes, size, count, user in
            Transfer.at(user)?.fillUpload(UnsafeMutableRawBufferPointer(start: bytes, count: size * count))
                ?? Int(CURL_READFUNC_ABORT)
        }
        easy.onSeek { user, offset, origin in
            guard origin == SEEK_SET, Transfer.at(user)?.upload.seek(to: Int64(offset)) == true else {
                return Int32(CURL_SEEKFUNC_FAIL)
            }
            return Int32(CURL_SEEKFUNC_OK)
        }
        easy.onPrerequest { user, peer, _, peerPort, ownPort in
            let connection = OpenSockets.Connection(
                peer: peer.map { String(cString: $0) } ?? "", peerPort: UInt16(truncatingIfNeeded: peerPort),
                ownPort: UInt16(truncatingIfNeeded: ownPort))
            return Transfer.at(user)?.beforeRequest(on: connection) == true
                ? Int32(CURL_PREREQFUNC_OK) : Int32(CURL_PREREQFUNC_ABORT)
        }
        if fileScheme != nil {
            easy.setPointer(CURLOPT_XFERINFODATA, user)
            easy.set(CURLOPT_NOPROGRESS, false)
            easy.onProgress { user, _, _, _, _ in Transfer.at(user)?.mayGoOn() == true ? 0 : 1 }
        }
        easy.onOpenSocket { user, _, address in
            guard let address, let transfer = Transfer.at(user) else { return muster_curl_socket_bad() }
            return transfer.openSocket(address)
        }
        easy.onCloseSocket { sockets, socket in
            sockets.map { Unmanaged<OpenSockets>.fromOpaque($0).takeUnretainedValue().close(socket) } ?? -1
        }
    }

    private static func at(_ user: UnsafeMutableRawPointer?) -> Transfer? {
        user.map { Unmanaged<Transfer>.fromOpaque($0).takeUnretainedValue() }
    }

    private func openSocket(_ address: UnsafeMutablePointer<curl_sockaddr>) -> curl_socket_t {
        guard mayConnect(to: Self.numericAddress(address)) else { return muster_curl_socket_bad() }
        // Closed on exec, so that a child process does not keep connections open.
        let type = address.pointee.socktype | Int32(SOCK_CLOEXEC.rawValue)
        let opened = OpenDescriptors.sparing(socket(address.pointee.family, type, address.pointee.protocol))
        if opened < 0 { socketFailed(errno) } else { sockets.opened(opened) }
        return opened
    }

    /// The numeric address, empty if it is neither IPv4 nor IPv6.
    private static func numericAddress(_ address: UnsafeMutablePointer<curl_sockaddr>) -> String {
        guard let offset = MemoryLayout<curl_sockaddr>.offset(of: \.addr) else { return "" }
        let raw = UnsafeRawPointer(address) + offset
        return withUnsafeTemporaryAllocation(of: CChar.self, capacity: 64) { text in
            text.initialize(repeating: 0)
            let code = getnameinfo(
                raw.assumingMemoryBound(to: sockaddr.self),
                socklen_t(address.pointee.addrlen),
                text.baseAddress,
                socklen_t(text.count),
                nil,
                0,
                NI_NUMERICHOST
            )
            return code == 0 ? text.baseAddress.map { String(cString: $0) } ?? "" : ""
        }
    }
}
