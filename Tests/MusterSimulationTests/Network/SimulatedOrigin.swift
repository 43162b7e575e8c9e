import MusterCurl
import MusterTestSupport
import Synchronization

/// A web server of a history, with its faults (F10). It knows what each of its files was at any time.
final class SimulatedOrigin: Sendable {
    /// How a file is told from other versions of it.
    enum Validator: CaseIterable, Sendable {
        case strong
        case weak
        case none
    }

    /// A file.
    struct File {
        let seed: UInt64
        let size: Int
        let validator: Validator
        /// Which version of it is served.
        var version = 0

        /// The content of a version.
        func content(_ version: Int) -> [UInt8] {
            var random = SeededGenerator(seed: seed &+ UInt64(version) &* 0x51_7cc1_b727_220a)
            return Array(unsafeUninitializedCapacity: size) { bytes, count in
                while count < size {
                    let word = random.next()
                    withUnsafeBytes(of: word) { word in
                        for byte in word.prefix(size - count) {
                            bytes.initializeElement(at: count, to: byte)
                            count += 1
                        }
                    }
                }
            }
        }

        var etag: String? {
            switch validator {
            case .strong: "\"\(seed)-\(version)\""
            case .weak: "W/\"\(seed)-\(version)\""
            case .none: nil
            }
        }
    }

    /// What the server does with requests for a while.
    enum Mood: Hashable, Sendable {
        /// It answers.
        case well
        /// It answers 503, with Retry-After in seconds if there is a number.
        case busy(Int?)
        /// It resets connections in the middle of bodies.
        case resetting
        /// It ends bodies early.
        case truncating
        /// It answers nothing.
        case silent
    }

    /// What comes as an answer.
    struct Answer {
        let head: ResponseHead
        let body: [UInt8]
        /// After how many bytes of the body the connection ends, and how.
        let cut: (after: Int, error: TransferError)?
    }

    private struct State {
        var files: [String: File] = [:]
        /// The contents of the versions that were asked for.
        var contents: [String: [Int: [UInt8]]] = [:]
        var mood = Mood.well
        var transfers: [String: Int] = [:]
    }

    /// The origin's name in URLs.
    let host: String
    private let state = Mutex(State())

    init(_ host: String) { self.host = host }

    /// The URL of a file.
    func url(_ path: String) -> String { "http://\(host)\(path)" }

    /// Serves a file.
    func serve(_ path: String, _ file: File) { state.withLock { $0.files[path] = file } }

    /// Changes what the server does.
    func become(_ mood: Mood) { state.withLock { $0.mood = mood } }

    /// Puts another version in the place of a file.
    func changeFile(_ path: String) { state.withLock { $0.files[path]?.version += 1 } }

    /// The contents that a file has had.
    func contents(of path: String) -> [[UInt8]] {
        guard let file = state.withLock({ $0.files[path] }) else { return [] }
        return (0...file.version).map { content(of: path, file, $0) }
    }

    private func content(of path: String, _ file: File, _ version: Int) -> [UInt8] {
        if let known = state.withLock({ $0.contents[path]?[version] }) { return known }
        let content = file.content(version)
        state.withLock { $0.contents[path, default: [:]][version] = content }
        return content
    }

    /// The answer to a request; `nil` for none.
    func answer(_ request: TransferRequest, _ simulation: Simulation) -> Answer? {
        let path = String(request.url.dropFirst("http://\(host)".count))
        let (mood, file) = state.withLock { ($0.mood, $0.files[path]) }
        var headers: HeaderList = []
        switch mood {
        case .silent: return nil
        case .busy(let seconds):
            if let seconds { headers.append("Retry-After", "\(seconds)") }
            return Answer(head: head(503, request, headers, 0), body: [], cut: nil)
        case .well, .resetting, .truncating: break
        }
        guard let file else { return Answer(head: head(404, request, headers, 0), body: [], cut: nil) }
        var body = content(of: path, file, file.version)
        var status = 200
        headers.append("Accept-Ranges", "bytes")
        if let etag = file.etag { headers.append("ETag", etag) }
        // A weak validator never matches If-Range (RFC 9110 §13.1.5).
        let condition = request.headers["If-Range"]
        let isMet = condition.map { $0 == file.etag && file.validator == .strong } ?? true
        if let range = request.range, isMet {
            guard range.first < body.count else {
                headers.append("Content-Range", "bytes */\(body.count)")
                return Answer(head: head(416, request, headers, 0), body: [], cut: nil)
            }
            let last = min(Int(range.last ?? .max), body.count - 1)
            headers.append("Content-Range", "bytes \(range.first)-\(last)/\(body.count)")
            body = Array(body[Int(range.first)...last])
            status = 206
        }
        return Answer(
            head: head(status, request, headers, body.count), body: body, cut: cut(body.count, mood, simulation))
    }

    private func cut(_ count: Int, _ mood: Mood, _ simulation: Simulation) -> (after: Int, error: TransferError)? {
        guard count > 0, simulation.chance(500) else { return nil }
        let after = Int(simulation.random(0...Int64(count - 1)))
        let detail = TransferError.Detail(code: 0, message: "by the simulation")
        switch mood {
        case .resetting: return (after, .reset(detail))
        case .truncating: return (after, .truncated(detail))
        case .well, .busy, .silent: return nil
        }
    }

    private func head(
        _ status: Int, _ request: TransferRequest, _ headers: HeaderList, _ length: Int
    ) -> ResponseHead {
        var headers = headers
        headers.append("Content-Length", "\(length)")
        headers.append("Content-Type", "application/octet-stream")
        return ResponseHead(
            status: status, effectiveURL: request.url, headers: headers, remoteAddress: "192.0.2.1", remotePort: 80,
            bodyFraming: .contentLength(Int64(length)))
    }
}
