import MusterAPI
import MusterCore

/// What helps against failures that a further try alone does not mend.
enum FailureAdvice {
    /// What to do about a failure; `nil` where the same may well succeed the next time.
    static func text(_ failure: FailureDocument) -> String? {
        if failure.detail.firstRange(of: "can't be read again to prove its end") != nil {
            return "nothing proves that all of it came: --accept-unframed takes what comes"
        }
        if failure.detail.firstRange(of: "what came can't be gone on with") != nil {
            return failure.detail.firstRange(of: "no validator") == nil
                ? "it breaks off, and has to come in one piece: try another source"
                : "it breaks off, and nothing tells that the rest would be of the same file: --digest does, or try another source"
        }
        if failure.detail.firstRange(of: "too many redirects") != nil {
            return
                "its redirects lead in a circle, as where a cookie or a login is wanted: check the URL (--cookie, --user)"
        }
        if failure.kind == .authentication, let advice = secret(failure.detail) { return advice }
        return switch failure.kind {
        case .tls: tls(failure.detail)
        case .authentication where failure.status == 407:
            "a proxy wants credentials, or what answers says to be one: --proxy http://NAME:PASSWORD@HOST:PORT"
        case .authentication:
            "the origin wants credentials, or others than these: --user NAME:PASSWORD, or --header \"Authorization: …\""
        case .digestMismatch:
            "the origin has another file than the digest says: check the digest and where it comes from"
        case .sizeMismatch: "the origin's file has another size than was said: check the size"
        case .notFound: "the origin does not have it: check the URL"
        case .refusedAddress: "the address may not be fetched from: --allow-address ADDRESS permits it"
        case .httpStatus(403):
            "the origin refuses to give it: check the URL, and what the origin asks for (--user, --header, --cookie)"
        case .httpStatus(511): "the network wants you to log in first: open the URL in a browser"
        case .httpStatus(let status) where !FailureKind.isTransient(status: status):
            "the origin refuses the request: check the URL"
        case .badRange: "the origin's answers can't be trusted, and the same will come again: try another source"
        case .storage: storage(failure)
        case .noPermission: "the file may not be written there: check who owns the directory"
        case .noSpace, .storageFull: room
        case .network, .dns, .timeout, .tooSlow, .httpStatus, .changed, .poison, .deadline, .unreadable: nil
        }
    }

    /// What helps where TLS failed: an authority is missing only if the certificate was looked at and nothing else is wrong with it.
    private static func tls(_ detail: String) -> String {
        func says(_ texts: String...) -> Bool { texts.contains { detail.lowercased().firstRange(of: $0) != nil } }
        if says("does not match", "subject name", "no alternative certificate") {
            return "the origin's certificate is for another name: use the name that it is for in the URL"
        }
        guard says("certificate") else { return "no TLS came about with the origin: check scheme and port of the URL" }
        return "the origin's certificate was refused: --ca-file FILE names the authorities to trust"
    }

    /// What helps where a secret can't be had.
    private static func secret(_ detail: String) -> String? {
        for (form, what) in [("env:", "set the variable"), ("file:", "put the file there")]
        where detail.firstRange(of: form) != nil {
            return "a secret that the request names can't be had: \(what) where its worker runs, or name another one"
        }
        return nil
    }

    /// What helps where another file is at the task's path.
    static let taken =
        "another file is at that path: move it away; or --if-exists replace puts the new one in its place, --if-exists rename beside it"

    /// Whether something else was where the task's own file should be; a further try would find it there again.
    private static func storage(_ failure: FailureDocument) -> String? {
        if ["no regular file", "irectory"].contains(where: { failure.detail.firstRange(of: $0) != nil }) {
            return
                "a directory, or something else that is no file, is at that path: give the file another path, or move that away"
        }
        return failure.detail.firstRange(of: " stands at ") != nil ? taken : nil
    }

    /// What helps where there is no room.
    private static let room = "there is too little room: make some"

    /// What to do about the failures of some tasks: each advice once, with the files that it is for.
    ///
    /// - Parameter areAll: whether there are no other ones.
    static func hints(_ tasks: [TaskDocument], areAll: Bool = true) -> [String] {
        var hints: [(text: String, paths: [String])] = []
        for task in tasks {
            guard let text = task.failure.flatMap(text) else { continue }
            if let index = hints.firstIndex(where: { $0.text == text }) {
                hints[index].paths.append(task.path)
            } else {
                hints.append((text, [task.path]))
            }
        }
        return hints.map { hint in
            let more = hint.paths.count - namedFiles
            let names =
                hint.paths.prefix(namedFiles).joined(separator: ", ")
                + (more > 0 ? " and \(areAll ? "" : "at least ")\(more) more" : "")
            return TextWidth.escaped("\(names): \(hint.text)")
        }
    }

    /// The most files that an advice names.
    private static let namedFiles = 3

    /// The same for somebody who reads of a group, with the commands that take these options.
    static func groupHints(_ tasks: [TaskDocument], of group: String, areAll: Bool = true) -> [String] {
        let advice = Set(tasks.map { $0.failure.flatMap(text) })
        let name = FailureText.quoted(group)
        let ways = Set(advice.compactMap { $0.flatMap(OptionPlace.init) })
        var lines = hints(tasks, areAll: areAll) + OptionPlace.allCases.filter(ways.contains).map { $0.way(name) }
        if tasks.contains(where: { $0.failure?.kind == .deadline }) {
            lines.append("more time is given with: muster limit \(name) --deadline 2h, and then: muster retry \(name)")
        } else if advice.contains(nil) || advice.contains(taken) {
            lines.append("what failed is tried again with: muster retry \(name)")
        }
        return lines
    }

    /// How an option that an advice names is given to a task of a group: a retry alone brings the same again. `nil` where no option is named.
    static func way(_ advice: String, group: String, key: String) -> String? {
        let (name, task) = (FailureText.quoted(group), "\(FailureText.quoted(group)) \(FailureText.quoted(key))")
        guard let place = OptionPlace(advice) else { return nil }
        guard advice == taken else { return place.way(name) }
        return
            "once it is moved away: muster retry \(task); for the options, which a group keeps: muster remove \(task), and then "
            + "muster add OTHER-GROUP … with one of them"
    }

    /// Where the options are given that an advice may name.
    private enum OptionPlace: CaseIterable {
        /// How sources are asked can be changed.
        case asking
        /// What becomes of files is said when their group is made.
        case making
        /// What may be fetched at all is said where the coordinator is started.
        case coordinator

        /// The place of the option in an advice, if there is one.
        init?(_ advice: String) {
            func names(_ options: String...) -> Bool { options.contains { advice.firstRange(of: " \($0)") != nil } }
            if names("--user", "--header", "--proxy", "--cookie", "--ca-file", "(--cookie", "(--user") {
                self = .asking
            } else if names("--allow-address") {
                self = .coordinator
            } else if names("--") {
                self = .making
            } else {
                return nil
            }
        }

        /// How it is given to a group, whose name is that of a shell.
        func way(_ name: String) -> String {
            switch self {
            case .asking: "such options are changed with: muster set \(name) …, and then: muster retry \(name)"
            case .making: "a group keeps such options: muster remove \(name), and then muster add \(name) … with them"
            case .coordinator:
                "the coordinator has that option (muster up, muster serve); and then: muster retry \(name)"
            }
        }
    }

    /// The same for somebody who may run `get` once more, which is what helps where nothing else is known.
    static func lines(_ tasks: [TaskDocument], areAll: Bool = true) -> [String] {
        let advice = tasks.map { $0.failure.flatMap(text) }
        var lines = hints(tasks, areAll: areAll)
        if advice.contains(room) { lines.append("with --on-full wait the same command waits for room and goes on") }
        if tasks.isEmpty || advice.contains(where: { $0 == nil || $0 == room }) {
            lines.append(
                "run the same command again, which goes on where it stopped; --tries N has it try more often, such as through a longer outage"
            )
        }
        return lines
    }
}
