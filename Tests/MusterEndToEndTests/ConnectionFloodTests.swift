import Glibc
import MusterCore
import MusterTestSupport
import SystemPackage
import Testing

extension EndToEnd {
    /// Thousands of connections that send nothing, or almost nothing (F22, F23).
    @Suite struct ConnectionFlood {
        /// What the connections send.
        enum Talk: String, CaseIterable, Sendable {
            /// Nothing at all.
            case nothing
            /// The beginning of a head that never ends.
            case beginningOfHead
            /// A head, and the beginning of a body that never ends.
            case beginningOfBody

            var text: String {
                switch self {
                case .nothing: ""
                case .beginningOfHead: "GET /v1/groups HTTP/1.1\r\nHost: localhost\r\nX-"
                case .beginningOfBody:
                    """
                    POST /v1/groups HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
                    Content-Length: 1000000\r\n\r\n{
                    """
                }
            }
        }

        /// Open connections, closed with the object.
        private final class Flood {
            private var numbers: [Int32] = []

            /// Opens that many connections, or as many as the machine allows.
            func open(_ count: Int, port: Int, saying text: String) throws {
                for _ in 0..<count {
                    let number = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
                    guard number >= 0 else { throw Errno(rawValue: errno) }
                    numbers.append(number)
                    var address = sockaddr_in()
                    address.sin_family = sa_family_t(AF_INET)
                    address.sin_port = UInt16(port).bigEndian
                    address.sin_addr = in_addr(s_addr: UInt32(0x7F00_0001).bigEndian)
                    let result = withUnsafePointer(to: &address) {
                        $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                            connect(number, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
                        }
                    }
                    guard result == 0 else { throw Errno(rawValue: errno) }
                    let bytes = Array(text.utf8)
                    _ = send(number, bytes, bytes.count, Int32(MSG_NOSIGNAL))
                }
            }

            deinit { for number in numbers { close(number) } }
        }

        /// Raises the limit of this process's descriptors as far as possible, and returns it.
        private static func raiseLimit() -> Int {
            var limit = rlimit()
            _ = getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
            limit.rlim_cur = limit.rlim_max
            _ = setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
            return Int(clamping: limit.rlim_cur)
        }

        /// A worker does its work while the connections are open, and the coordinator still runs afterwards.
        private func workGoesOn(_ fleet: Fleet, _ origin: ScriptedOrigin, group: String) async throws {
            let file = origin.serveFile("\(group).bin", size: .kibibytes(300))
            _ = try await fleet.muster(["add", group, file.url, "--wait"], limit: .seconds(60))
            #expect(try FileDigest.sha256(fleet.sink.appending(file.path)) == file.sha256)
        }

        @Test(arguments: Talk.allCases)
        func moreConnectionsThanDescriptorsStarveNoWorker(_ talk: Talk) async throws {
            _ = Self.raiseLimit()
            let origin = try await ScriptedOrigin.start()
            try await Fleet.run(prefix: ["prlimit", "--nofile=256:1024"]) { fleet in
                try await fleet.startWorker("a")
                let coordinator = await fleet.coordinators[0]
                try await workGoesOn(fleet, origin, group: "before")
                let flood = Flood()
                try flood.open(1_100, port: coordinator.port, saying: talk.text)
                try await workGoesOn(fleet, origin, group: "during")
                try flood.open(500, port: coordinator.port, saying: talk.text)
                try await workGoesOn(fleet, origin, group: "again")
                #expect(coordinator.process.exit == nil)
                withExtendedLifetime(flood) {}
            }
        }

        @Test func fiveThousandIdleConnectionsLeaveSyncsUnharmed() async throws {
            let count = min(5_000, Self.raiseLimit() - 1_000)
            try #require(count > 0, "the machine allows too few descriptors for a flood")
            let origin = try await ScriptedOrigin.start()
            try await Fleet.run { fleet in
                try await fleet.startWorker("a")
                let flood = Flood()
                let coordinator = await fleet.coordinators[0]
                try flood.open(count / 2, port: coordinator.port, saying: Talk.nothing.text)
                try flood.open(count / 2, port: coordinator.port, saying: Talk.beginningOfHead.text)
                try await workGoesOn(fleet, origin, group: "during")
                #expect(coordinator.process.exit == nil)
                // The worker still has its first session: no sync came too late.
                #expect(await fleet.worker("a")?.exit == nil)
                let opened = await fleet.worker("a")?.standardError.split(separator: "Session opened").count
                #expect(opened == 2)
                withExtendedLifetime(flood) {}
            }
        }
    }
}
