import FoundationEssentials

extension ResponsePlan {
    /// What the request asked for, as far as a plan depends on it.
    struct Asked: Sendable {
        let request: OriginRequest
        let range: OriginRange
        /// Counts the requests of the path from 0.
        let number: Int
        /// How many other responses for the path are under way.
        let activeOnPath: Int
        let hasClientCertificate: Bool
        /// The target of a signed URL that was made for this request.
        let freshURL: String?

        var isHead: Bool { request.method == "HEAD" }
        var ifRange: String? { request.header("If-Range") }

        /// A pseudo-random index below `count`.
        func choice(below count: Int, seed: UInt64) -> Int {
            Chance.index(below: count, seed: seed, path: request.path, request: number)
        }
    }

    /// Plans the response to a request for a file, with all misbehaviours that apply.
    static func make(
        file original: ScriptedOrigin.File,
        asked: Asked,
        misbehaviours: [ScriptedOrigin.Misbehaviour]
    ) -> ResponsePlan {
        var file = original
        for case .replaced(let replacement) in misbehaviours { file = replacement }
        for case .mixedCache(let versions, let seed, let heedsNoCache) in misbehaviours where !versions.isEmpty {
            let wantsNew = asked.request.header("Cache-Control")?.lowercased().contains("no-cache") == true
            file =
                wantsNew && heedsNoCache
                ? versions[versions.count - 1] : versions[asked.choice(below: versions.count, seed: seed)]
        }
        for case .nodes(let nodes, let seed) in misbehaviours where !nodes.isEmpty {
            let node = nodes[asked.choice(below: nodes.count, seed: seed)]
            (file.etag, file.lastModified) = (node.etag, node.lastModified)
        }
        for case .etag(let etag) in misbehaviours { file.etag = etag }
        for case .lastModified(let lastModified) in misbehaviours { file.lastModified = lastModified }
        if misbehaviours.contains(.weakETag), let etag = file.etag { file.etag = "W/" + etag }
        if misbehaviours.contains(.noValidators) { (file.etag, file.lastModified) = (nil, nil) }

        var plan = correct(file: file, range: effectiveRange(asked, file: file, misbehaviours: misbehaviours))
        if !misbehaviours.contains(.ignoreConditions), isUnmodified(asked, file: file) { plan.makeUnmodified() }
        for misbehaviour in misbehaviours { plan.apply(misbehaviour, file: file, asked: asked) }
        plan.omitsBody = asked.isHead || plan.status == 304
        return plan
    }

    /// The range that counts after If-Range (RFC 9110 §13.1.5): only a strong ETag, or the very same date, selects a part.
    private static func effectiveRange(
        _ asked: Asked,
        file: ScriptedOrigin.File,
        misbehaviours: [ScriptedOrigin.Misbehaviour]
    ) -> OriginRange {
        if misbehaviours.contains(.ignoreRange) { return .none }
        guard let condition = asked.ifRange else { return asked.range }
        if misbehaviours.contains(.mistrustIfRange) { return .none }
        if misbehaviours.contains(.ignoreIfRange) { return asked.range }
        let matches =
            condition.hasPrefix("\"")
            ? condition == file.etag : !condition.hasPrefix("W/") && condition == file.lastModified
        return matches ? asked.range : .none
    }

    /// Whether the client has the current version already; evaluated before Range and If-Range (RFC 9110 §13.2.2).
    private static func isUnmodified(_ asked: Asked, file: ScriptedOrigin.File) -> Bool {
        if let tags = asked.request.header("If-None-Match") {
            let opaque = { (tag: String) in tag.hasPrefix("W/") ? String(tag.dropFirst(2)) : tag }
            return file.etag.map { opaque($0) == opaque(tags) } ?? false
        }
        return asked.request.header("If-Modified-Since").map { $0 == file.lastModified } ?? false
    }

    private mutating func makeUnmodified() {
        status = 304
        for name in ["Content-Type", "Content-Range"] { set(name, nil) }
        segments = []
        framing = .length([])
        omitsBody = true
    }

    private static func correct(file: ScriptedOrigin.File, range: OriginRange) -> ResponsePlan {
        var plan = ResponsePlan()
        plan.set("Content-Type", file.contentType)
        plan.set("ETag", file.etag)
        plan.set("Last-Modified", file.lastModified)
        plan.set("Accept-Ranges", "bytes")
        plan.headers += file.headers
        let size = file.content.size
        switch range.selection(size: size) {
        case .whole:
            plan.select(0..<size, of: file.content)
        case .part(let part):
            plan.status = 206
            plan.set("Content-Range", contentRange(part, size: size))
            plan.select(part, of: file.content)
        case .unsatisfiable:
            plan.replaceBody(status: 416, contentType: "text/plain", text: "range not satisfiable\n")
            plan.set("Content-Range", "bytes */\(size)")
        }
        return plan
    }

    private mutating func apply(
        _ misbehaviour: ScriptedOrigin.Misbehaviour,
        file: ScriptedOrigin.File,
        asked: Asked
    ) {
        let size = file.content.size
        let part = selectedPart
        switch misbehaviour {
        case .ignoreRange, .replaced, .etag, .lastModified, .nodes, .mixedCache, .weakETag, .noValidators,
            .mistrustIfRange, .ignoreIfRange, .ignoreConditions:
            // `make` handles these before it plans the correct response.
            break
        case .partAsWhole(let statesRange):
            guard part != nil else { break }
            status = 200
            if !statesRange { set("Content-Range", nil) }
        case .refuseIfRange(let refusal):
            if asked.ifRange != nil { replaceBody(status: refusal, contentType: "text/plain", text: "no conditions\n") }
        case .contentRangeShifted(let distance):
            guard let part else { break }
            set("Content-Range", Self.contentRange(part.shifted(by: distance), size: size))
        case .rangeShifted(let distance):
            guard let part else { break }
            let moved = part.shifted(by: distance).clamped(to: 0..<size)
            set("Content-Range", Self.contentRange(moved, size: size))
            select(moved, of: file.content)
        case .noContentRange:
            if status == 206 { set("Content-Range", nil) }
        case .contentRange(let value):
            if status == 206 { set("Content-Range", value) }
        case .shortRange(let bytes):
            guard let part else { break }
            let shorter = part.lowerBound..<min(part.upperBound, part.lowerBound + max(1, bytes))
            set("Content-Range", Self.contentRange(shorter, size: size))
            select(shorter, of: file.content)
        case .surplus(let bytes):
            surplus = bytes
        case .unmodified(let etag):
            makeUnmodified()
            set("ETag", etag)
        case .contentLengthOff(let distance):
            framing = .length(["\(bodyLength + distance)"])
            ending = .close
        case .totalSize(let total):
            if let part { set("Content-Range", Self.contentRange(part, size: total)) }
        case .multipartByteRanges:
            if let part { makeMultipart(part, file: file) }
        case .contentEncoding(let coding):
            set("Content-Encoding", coding)
        case .chunked:
            framing = .chunked(lengths: [], terminated: true)
        case .chunkedUnterminated(let bytes):
            framing = .chunked(lengths: [], terminated: false)
            stop(after: bytes, .close)
        case .closeDelimited:
            framing = .close
            ending = .close
        case .truncated(let bytes):
            stop(after: bytes, .close)
        case .reset(let bytes):
            stop(after: bytes, .reset)
        case .hang(let bytes):
            stop(after: bytes, .hang)
        case .uncleanClose(let bytes):
            stop(after: bytes, .unclean)
        case .resetStream(let bytes, let code):
            stop(after: bytes, .resetStream(code))
        case .goAway(let bytes, let isFinished):
            goAway = (bytes, isFinished)
        case .rangeNotSatisfiable:
            replaceBody(status: 416, contentType: "text/plain", text: "range not satisfiable\n")
            set("Content-Range", "bytes */\(size)")
        case .rangeNotSatisfiableStating(let total):
            replaceBody(status: 416, contentType: "text/plain", text: "range not satisfiable\n")
            set("Content-Range", total.map { "bytes */\($0)" })
        case .refuseHead:
            guard asked.isHead else { break }
            replaceBody(status: 405, contentType: "text/plain", text: "")
            set("Allow", "GET")
        case .lieInHead(let length):
            if asked.isHead { framing = .length(["\(length)"]) }
        case .acceptRanges(let value):
            set("Accept-Ranges", value)
        case .redirect(let target, let status):
            redirect(to: target, status: status)
        case .redirectChain(let hops, let status):
            let hop = asked.request.parameter("hop").flatMap { Int($0) } ?? 0
            if hop < hops { redirect(to: "\(asked.request.path)?hop=\(hop + 1)", status: status) }
        case .redirectForCookie(let name, let value, let status):
            guard asked.request.cookie(name) != value else { break }
            redirect(to: asked.request.target, status: status)
            set("Set-Cookie", "\(name)=\(value); Path=/")
        case .redirectToSigned(_, let status):
            if let target = asked.freshURL { redirect(to: target, status: status) }
        case .status(let status, let retryAfter):
            replaceBody(status: status, contentType: "text/plain", text: "status \(status)\n")
            set("Retry-After", retryAfter)
        case .statusOnly(let status):
            self.status = status
        case .limit(let count, let refusal):
            if asked.activeOnPath >= count { refuse(refusal) }
        case .closeBeforeHeaders:
            instead = .close
        case .resetBeforeHeaders:
            instead = .reset
        case .htmlErrorPage:
            replaceBody(
                status: 200,
                contentType: "text/html",
                text: "<!doctype html><title>Oops</title><h1>Something went wrong</h1>\n"
            )
        case .conflictingContentLengths:
            framing = .length(["\(bodyLength)", "\(bodyLength + 1)"])
        case .negativeContentLength:
            framing = .length(["-\(max(1, bodyLength))"])
            ending = .close
        case .garbage(let text):
            garbage = text
        case .date(let value):
            date = .fixed(value)
        case .requires(let requirement):
            guard !requirement.isMet(by: asked) else { break }
            replaceBody(status: 401, contentType: "text/plain", text: "who are you?\n")
            if case .basic = requirement { set("WWW-Authenticate", "Basic realm=\"scripted\"") }
        case .transferEncodingAndContentLength:
            framing = .chunked(lengths: ["\(bodyLength)"], terminated: true)
        case .drip(let bytes, let interval):
            pace = (bytes: max(1, bytes), every: interval)
        case .hangBeforeHeaders:
            instead = .hang
        case .corruptByte(let offset):
            corruptOffsets.append(offset)
        case .headers(let fields):
            for field in fields { set(field.name, field.value) }
        case .interim(let status):
            interim.append(status)
        }
    }

    /// The part of the file that a 206 sends.
    private var selectedPart: Range<Int64>? {
        guard status == 206, case .content(_, let range)? = segments.first else { return nil }
        return range
    }

    private mutating func select(_ range: Range<Int64>, of content: ScriptedOrigin.Content) {
        segments = [.content(content, range)]
        framing = .length(["\(range.upperBound - range.lowerBound)"])
    }

    private mutating func redirect(to target: String, status: Int) {
        replaceBody(status: status, contentType: "text/plain", text: "elsewhere\n")
        set("Location", target)
    }

    private mutating func stop(after bytes: Int64, _ ending: Ending) {
        stopsAfterBytes = bytes
        self.ending = ending
    }

    private mutating func makeMultipart(_ part: Range<Int64>, file: ScriptedOrigin.File) {
        let boundary = "scripted-boundary"
        set("Content-Range", nil)
        set("Content-Type", "multipart/byteranges; boundary=\(boundary)")
        let opening = """
            \r\n--\(boundary)\r\nContent-Type: \(file.contentType)\r\n\
            Content-Range: \(Self.contentRange(part, size: file.content.size))\r\n\r\n
            """
        segments = [
            .literal(Array(opening.utf8)), .content(file.content, part),
            .literal(Array("\r\n--\(boundary)--\r\n".utf8)),
        ]
        framing = .length(["\(bodyLength)"])
    }

    private static func contentRange(_ part: Range<Int64>, size: Int64) -> String {
        "bytes \(part.lowerBound)-\(part.upperBound - 1)/\(size)"
    }
}

extension Range<Int64> {
    func shifted(by distance: Int64) -> Range<Int64> {
        (lowerBound + distance)..<(upperBound + distance)
    }
}

extension ScriptedOrigin.Requirement {
    /// Whether a request meets it.
    func isMet(by asked: ResponsePlan.Asked) -> Bool {
        switch self {
        case .basic(let user, let password):
            let credentials = Data("\(user):\(password)".utf8).base64EncodedString()
            return asked.request.header("Authorization") == "Basic \(credentials)"
        case .header(let field):
            return asked.request.header(field.name) == field.value
        case .cookie(let name, let value):
            return asked.request.cookie(name) == value
        case .clientCertificate:
            return asked.hasClientCertificate
        }
    }
}
