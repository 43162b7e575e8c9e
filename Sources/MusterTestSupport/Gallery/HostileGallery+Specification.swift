extension HostileGallery {
    /// The description of an exhibit, before an origin plays it.
    struct Specification: Sendable {
        let row: Int
        let name: String
        let title: String
        var size: Int64
        var right = Right.bytes
        var behavesAfter: Int? = 0
        var needsDigest = false
        var isSlow = false
        /// What the origin does, and when.
        var misbehaviours: [ScriptedOrigin.Rule] = []
        /// Versions of the file that come after the first.
        var laterVersions: [ScriptedOrigin.Content] = []
        /// How long signed URLs are good for, if it takes them.
        var lifetime: ScriptedOrigin.Lifetime?
        /// The part of the URL before the host, with its `@`.
        var credentials = ""
        /// Whether a mirror has other content.
        var hasMirror = false

        init(_ row: Int, _ name: String, _ title: String, size: Int64) {
            self.row = row
            self.name = name
            self.title = title
            self.size = size
        }

        /// The path of the URL.
        var path: String { "/\(row)/\(name)" }
        /// The path of the file, where it differs from the path of the URL.
        var signedPath: String { "/signed\(path)" }
        /// The first version of the file.
        var content: ScriptedOrigin.Content { Self.content(name, version: 0, size: size) }

        static func content(_ name: String, version: UInt64, size: Int64) -> ScriptedOrigin.Content {
            .seeded(seed: Chance.number(seed: version, path: name, request: 0), size: size)
        }

        func isPlayable(over transport: ScriptedOrigin.Transport) -> Bool {
            misbehaviours.allSatisfy { $0.misbehaviour.isPlayable(over: transport) }
        }

        /// Whether bytes follow those that were announced: by HTTP/2 the whole message is malformed then (RFC 9113 §8.1.1).
        private var hasSurplus: Bool {
            misbehaviours.contains { rule in if case .surplus = rule.misbehaviour { true } else { false } }
        }

        /// The same specification, as it is over a transport.
        func fitting(_ transport: ScriptedOrigin.Transport) -> Self {
            guard transport.wire.version == .http2, hasSurplus else { return self }
            return with(\.right, .either).with(\.behavesAfter, nil)
        }

        /// Makes an origin play it, and returns the exhibit.
        func hang(in origin: ScriptedOrigin, mirror: ScriptedOrigin) -> Exhibit {
            if let lifetime {
                origin.serve(signedPath, ScriptedOrigin.File(content))
                origin.sign(signedPath, lifetime: lifetime)
            } else {
                origin.serve(path, ScriptedOrigin.File(content))
            }
            for rule in misbehaviours { origin.misbehave(path, rule.misbehaviour, when: rule.condition) }
            if hasMirror {
                let other = ScriptedOrigin.File(Self.content(name, version: 1, size: size))
                mirror.serve(path, other)
            }
            let scheme = origin.transport.isTLS ? "https" : "http"
            return Exhibit(
                row: row,
                name: name,
                title: title,
                url: "\(scheme)://\(credentials)127.0.0.1:\(origin.port)\(path)",
                mirror: hasMirror ? mirror.url(path) : nil,
                size: size,
                sha256: ([content] + laterVersions).map { $0.sha256() },
                right: right,
                needsDigest: needsDigest,
                behavesAfter: behavesAfter,
                isSlow: isSlow
            )
        }
    }
}

/// The aspects of an exhibit, set one after the other.
extension HostileGallery.Specification {
    /// Misbehaves in these ways at all requests.
    func always(_ misbehaviours: ScriptedOrigin.Misbehaviour...) -> Self {
        misbehaviours.reduce(self) { $0.playing($1, .always) }
    }

    /// Misbehaves in these ways at all requests for a range.
    func ranged(_ misbehaviours: ScriptedOrigin.Misbehaviour...) -> Self {
        misbehaviours.reduce(self) { $0.playing($1, .ranged) }
    }

    /// Misbehaves at the first `count` requests, and behaves after that.
    func first(_ count: Int, _ misbehaviour: ScriptedOrigin.Misbehaviour) -> Self {
        var changed = playing(misbehaviour, .first(count))
        changed.behavesAfter = count
        return changed
    }

    /// Misbehaves from the second request on.
    func later(_ misbehaviour: ScriptedOrigin.Misbehaviour) -> Self { playing(misbehaviour, .after(1)) }

    /// Serves another version from the second request on, with these validators.
    func changing(_ change: (ScriptedOrigin.Content) -> ScriptedOrigin.File) -> Self {
        let version = Self.content(name, version: 1, size: size)
        var changed = playing(.replaced(with: change(version)), .after(1))
        changed.laterVersions = [version]
        return changed
    }

    /// No client can get the file from it.
    func never() -> Self {
        var changed = self
        (changed.right, changed.behavesAfter) = (.refusal, nil)
        return changed
    }

    /// Changes an aspect.
    func with<Value>(_ aspect: WritableKeyPath<Self, Value>, _ value: Value) -> Self {
        var changed = self
        changed[keyPath: aspect] = value
        return changed
    }

    /// Misbehaves in this way where a condition holds.
    func playing(
        _ misbehaviour: ScriptedOrigin.Misbehaviour,
        _ condition: ScriptedOrigin.Condition
    ) -> Self {
        var changed = self
        changed.misbehaviours.append(ScriptedOrigin.Rule(misbehaviour: misbehaviour, condition: condition))
        return changed
    }
}
