import Glibc
import MusterSystem
import Synchronization

@testable import MusterCurl

/// Starts a server process for every connection, with the connection as its standard input and output, as inetd does. So the
/// port is certainly free, and no start has to be awaited.
final class InetServer: Sendable {
    private struct Contents {
        var isStopped = false
        var processes: [pid_t] = []
        var acceptor: SystemThread?
    }

    let port: UInt16
    private let listener: Int32
    private let contents = Mutex(Contents())

    init(_ arguments: [String]) throws {
        let (listener, port) = try listeningSocket()
        self.listener = listener
        self.port = port
        let acceptor = try SystemThread { [self] in
            while true {
                let descriptor = accept(listener, nil, nil)
                guard descriptor >= 0 else { return }
                // Closed on exec, so that no server of another test holds the connection open.
                _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
                serve(descriptor, arguments)
            }
        }
        contents.withLock { $0.acceptor = acceptor }
    }

    /// How many connections a process was started for so far.
    var acceptedConnections: Int { contents.withLock { $0.processes.count } }

    private func serve(_ descriptor: Int32, _ arguments: [String]) {
        contents.withLock { contents in
            if !contents.isStopped, let pid = try? spawn(arguments, passing: [(descriptor, 0), (descriptor, 1)]) {
                contents.processes.append(pid)
            }
        }
        close(descriptor)
    }

    /// Sends a signal to the process of every connection.
    func signal(_ number: Int32) {
        for pid in contents.withLock({ $0.processes }) { kill(-pid, number) }
    }

    /// Ends every process and waits for it.
    func stop() {
        let (acceptor, processes) = contents.withLock { contents in
            contents.isStopped = true
            return (contents.acceptor.take(), contents.processes)
        }
        shutdown(listener, Int32(SHUT_RDWR))
        acceptor?.join()
        close(listener)
        for pid in processes {
            kill(-pid, SIGKILL)
            _ = waitForEnd(of: pid)
        }
    }
}
