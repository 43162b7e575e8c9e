import MusterAPI
import MusterCore

/// Advice against a failure that another try alone does not fix.
struct Advice: Hashable, Sendable {
    /// What to do.
    let text: String
    /// Where the setting is changed that the advice is about, since a retry alone would fail again. `nil` if there is no such setting.
    var place: Place?

    /// Where a setting is changed.
    enum Place: Hashable, Sendable {
        /// How sources are asked: `muster set` changes it for an existing group.
        case asking
        /// How files are stored: fixed when their group is created.
        case making
        /// What may be fetched at all: an option of the coordinator.
        case coordinator
        /// Which secrets of its machine a worker gives away: an option of the worker, here as it is typed.
        case worker(option: String)
        /// The deadline of a group: `muster limit` changes it.
        case deadline
        /// A property of a task: fixed when the task is added.
        case task

        /// The commands that change the setting for a group, or for one of its tasks; the name and the key are quoted for a shell.
        func way(_ name: String, key: String? = nil) -> String {
            switch self {
            case .asking: "such options are changed with: muster set \(name) …, and then: muster retry \(name)"
            case .making: "a group keeps such options: muster remove \(name), and then muster add \(name) … with them"
            case .coordinator:
                "the coordinator has that option (muster up, muster serve); and then: muster retry \(name)"
            case .worker(let option):
                "its worker gives it (muster up, muster work) with: \(option); and then: muster retry \(name)"
            case .deadline:
                "more time is given with: muster limit \(name) --deadline 2h, and then: muster retry \(name)"
            case .task:
                "a task keeps its own deadline: muster remove \(name) \(key ?? "KEY"), and then muster add \(name) --reopen -i MANIFEST with another one; "
                    + "for the same time once more: muster retry \(name)\(key.map { " \($0)" } ?? "")"
            }
        }
    }
}

/// Advice against failures that another try alone does not fix.
enum FailureAdvice {
    /// What to do about a failure; `nil` if the next try may well succeed.
    static func advice(_ failure: TaskFailure) -> Advice? {
        func says(_ text: String) -> Bool { failure.detail.firstRange(of: text) != nil }
        if says("can't be read again to prove its end") {
            return Advice(
                text: "nothing proves that all of it came: --accept-unframed takes what comes", place: .making)
        }
        if says("what came can't be gone on with") {
            return says("no validator")
                ? Advice(
                    text:
                        "it breaks off, and nothing tells that the rest would be of the same file: a digest does (get --digest), or try another source"
                ) : Advice(text: "it breaks off, and has to come in one piece: try another source")
        }
        if says("states no other validator, and") {
            let cause = "something else may come in its place: look at the URL; if that is the file by now, "
            return says("where the origin had")
                ? Advice(text: cause + "get it into another directory, or remove its group and add it anew")
                : Advice(
                    text: cause + "--if-exists replace, or another directory, fetches it from its beginning",
                    place: .making)
        }
        if says("too many redirects") {
            return Advice(
                text:
                    "its redirects lead in a circle, or to no end, as where a cookie or a login is wanted: check the URL (--cookie, --user)",
                place: .asking)
        }
        if failure.kind == .authentication, let advice = secret(failure) { return advice }
        return switch failure.kind {
        case .tls where isOfSFTP(failure):
            Advice(
                text:
                    "the host's key is not known, or is another one by now: --known-hosts FILE names a file that has it, as ssh-keyscan HOST prints it",
                place: .asking)
        case .tls: tls(failure.detail)
        case .authentication where isOfSFTP(failure):
            Advice(
                text:
                    "the host wants a password or a key, or others than these: --user NAME:PASSWORD, or --user NAME: --private-key FILE",
                place: .asking)
        case .authentication where failure.status == 407:
            Advice(
                text:
                    "a proxy wants credentials, or what answers says to be one: --proxy http://NAME:PASSWORD@HOST:PORT",
                place: .asking)
        case .authentication:
            Advice(
                text:
                    "the origin wants credentials, or others than these: --user NAME:PASSWORD, --netrc FILE, or --header \"Authorization: …\"",
                place: .asking)
        case .digestMismatch where says("the origin states"):
            Advice(text: "the origin's bytes are not what it says itself: try again later, or another source")
        case .digestMismatch:
            Advice(text: "the origin has another file than the digest says: check the digest and where it comes from")
        case .sizeMismatch: Advice(text: "the origin's file has another size than was said: check the size")
        case .notFound: Advice(text: "the origin does not have it: check the URL")
        case .dns: Advice(text: "no host has that name: check the URL and the network")
        case .proxy:
            Advice(
                text:
                    "it is the proxy that fails: check --proxy, or http_proxy and its like; --proxy direct asks without one",
                place: .asking)
        case .refusedAddress where says("a scheme that is not followed"):
            Advice(text: "its redirect leads neither to http nor to https: check the URL")
        case .refusedAddress:
            Advice(
                text: "the address may not be fetched from: --allow-address ADDRESS permits it", place: .coordinator)
        case .httpStatus(403):
            Advice(
                text:
                    "the origin refuses to give it: check the URL, and what the origin asks for (--user, --header, --cookie)",
                place: .asking)
        case .httpStatus(200..<300):
            Advice(
                text:
                    "something else comes in its place, such as a page to log in: check the URL, and what the origin asks for (--user, --cookie)",
                place: .asking)
        case .httpStatus(511): Advice(text: "the network wants you to log in first: open the URL in a browser")
        case .httpStatus(let status) where !FailureKind.isTransient(status: status):
            Advice(text: "the origin refuses the request: check the URL")
        case .badRange where says("ends with its connection"):
            Advice(
                text: "nothing tells where it ends: --digest proves it, and --accept-unframed takes what comes",
                place: .asking)
        case .badRange:
            Advice(
                text: "the origin's answers can't be trusted, and the same will come again: try another source")
        case .storage: storage(failure)
        case .noPermission:
            Advice(
                text: says("Permission denied") || says("Operation not permitted")
                    ? "the file may not be written there: check who owns the directory"
                    : "the system refuses the file there: check the place and what it is on")
        case .noSpace where says("the whole file system has"):
            Advice(text: "it is larger than the file system: use a directory on a larger one")
        case .noSpace, .storageFull: FailureKind.isOfQuota(failure.detail) ? quota : room
        // The task's own time begins anew with each retry, and the group's deadline does not change it.
        case .deadline where says("added or retried"):
            Advice(text: "it has a deadline of its own, which was too short: give it a longer one", place: .task)
        case .deadline: Advice(text: "there was too little time", place: .deadline)
        case .network where failure.detail.hasSuffix(": Connection refused"):
            Advice(text: "nothing answers there: check host and port of the URL, and whether the server runs")
        case .network, .timeout, .tooSlow, .httpStatus, .changed, .poison, .unreadable: nil
        }
    }

    private static func isOfSFTP(_ failure: TaskFailure) -> Bool {
        failure.source?.lowercased().hasPrefix("sftp:") ?? false
    }

    /// Advice if TLS failed. An authority is missing only if the certificate was checked and nothing else is wrong with it.
    private static func tls(_ detail: String) -> Advice {
        func says(_ texts: String...) -> Bool { texts.contains { detail.lowercased().firstRange(of: $0) != nil } }
        if says("does not match", "subject name", "no alternative certificate") {
            return Advice(
                text: "the origin's certificate is for another name: use the name that it is for in the URL")
        }
        if says("error setting certificate", "error adding trust anchors", "error reading ca cert") {
            return Advice(
                text: "--ca-file, or SSL_CERT_FILE, names a file that holds no certificates (PEM)", place: .asking)
        }
        if says(" alert "), says("certificate", "unknown ca", "access denied") {
            return Advice(
                text: "the origin wants a certificate of yours, or another one: --certificate FILE --key FILE",
                place: .asking)
        }
        if says("private key") {
            return Advice(text: "--key names no key of the certificate (--certificate)", place: .asking)
        }
        guard says("certificate") else {
            return Advice(text: "no TLS came about with the origin: check scheme and port of the URL")
        }
        return Advice(
            text: "the origin's certificate was refused: --ca-file FILE names the authorities to trust", place: .asking)
    }

    /// Advice if the worker can't read or may not give away a secret; `nil` for any other failure.
    private static func secret(_ failure: TaskFailure) -> Advice? {
        guard let match = failure.detail.firstMatch(of: /(env|file):(.+?) (is n[^;]*)/)?.output else { return nil }
        let (form, what, reason) = (match.1, match.2, match.3)
        guard reason.contains("this worker gives") else {
            let remedy = form == "env" ? "set the variable" : "put the file there"
            return Advice(
                text:
                    "a secret that the request names can't be had: \(remedy) where its worker runs, or name another one"
            )
        }
        let origin = failure.source.flatMap { try? SourceURL(validating: $0).origin } ?? "ORIGIN"
        let grant =
            form == "env"
            ? "\(SettingName.secretVariable.option) \(ShellWord("\(what)=\(origin)"))"
            : "\(SettingName.secretDirectory.option) \(ShellWord("\(directory(of: what))=\(origin)"))"
        return Advice(
            text: "a secret that the request names is not given to its source, or not there",
            place: .worker(option: grant))
    }

    private static func directory(of path: Substring) -> Substring {
        path.lastIndex(of: "/").map { $0 == path.startIndex ? "/" : path[..<$0] } ?? path
    }

    /// Advice if a file is at the task's path, and the group accepts no file that was there before.
    private static let present = Advice(
        text:
            "a file is at that path already, and its content was not compared: move it away; or --if-exists verify takes it if it is the same, "
            + "replace puts the new one in its place, rename beside it",
        place: .making)

    /// Advice if the file of another installation of Muster is at the task's path.
    private static let strangers = Advice(
        text:
            "another installation of Muster has put a file at that path, which no rule replaces: move it away, or use another directory; or "
            + "--if-exists rename puts the new one beside it",
        place: .making)

    /// Whether the advice is about a file that is at the task's path.
    private static func isInTheWay(_ advice: Advice?) -> Bool { [taken, present, strangers].contains(advice) }

    /// Advice if another file is at the task's path.
    static let taken = Advice(
        text:
            "another file is at that path: move it away; or --if-exists replace puts the new one in its place, --if-exists rename beside it",
        place: .making)

    /// Advice if something else is where the task's own file should be, since another try would find it there again; `nil` otherwise.
    private static func storage(_ failure: TaskFailure) -> Advice? {
        func says(_ text: String) -> Bool { failure.detail.firstRange(of: text) != nil }
        if let what = ["a directory", "a symbolic link", "no regular file"].first(where: { says("it is \($0)") }) {
            return Advice(
                text:
                    "\(what == "no regular file" ? "something that is no file" : what) is at that path: give the file another path, or move that away"
            )
        }
        if says("no plain directory") {
            return Advice(
                text:
                    "something that is no directory is on the way to that path: give the file another path, or move that away"
            )
        }
        guard says(" stands at ") else { return nil }
        return says("takes none that was there before") || says("it was there before")
            ? present : says("another installation's") ? strangers : taken
    }

    /// Advice if the disk is full.
    private static let room = Advice(text: "there is too little room: make some")

    /// Advice if the disk has room, but the user's quota is used up.
    private static let quota = Advice(
        text: "the quota is used up: delete something that counts for it, or have it raised")

    /// What to do about the failures of some tasks: each advice once, with the files that it is for.
    ///
    /// - Parameter areAll: whether no other tasks have failed.
    static func hints(_ tasks: [TaskDocument], areAll: Bool = true) -> [String] {
        var hints: [(text: String, paths: [String])] = []
        for task in tasks {
            guard let text = task.failure.flatMap(advice)?.text else { continue }
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

    /// The same hints for a group of a coordinator, with the commands that take these options.
    static func groupHints(_ tasks: [TaskDocument], of group: String, areAll: Bool = true) -> [String] {
        let known = tasks.map { $0.failure.flatMap(advice) }
        let name = "\(ShellWord(group))"
        var lines = hints(tasks, areAll: areAll)
        for way in known.compactMap({ $0?.place?.way(name) }) where !lines.contains(way) { lines.append(way) }
        if known.contains(nil) || known.contains(where: isInTheWay) {
            lines.append("what failed is tried again with: muster retry \(name)")
        }
        return lines.map { TextWidth.escaped($0) }
    }

    /// The commands with which a user follows the advice for a task of a group, since a retry alone would fail again. `nil` if there are none.
    static func way(_ advice: Advice, group: String, key: String) -> String? {
        let (name, task) = ("\(ShellWord(group))", "\(ShellWord(group)) \(ShellWord(key))")
        guard isInTheWay(advice) else { return advice.place?.way(name, key: "\(ShellWord(key))") }
        return
            "once it is moved away: muster retry \(task); for the options, which a group keeps: muster remove \(task), and then "
            + "muster add OTHER-GROUP … with one of them"
    }

    /// The same hints for a user of `get`. If there is no other advice, the user can run `get` once more.
    static func lines(_ tasks: [TaskDocument], areAll: Bool = true) -> [String] {
        let known = tasks.map { $0.failure.flatMap(advice) }
        var lines = hints(tasks, areAll: areAll)
        if known.contains(where: { if case .worker = $0?.place { true } else { false } }) {
            lines.append(
                "get gives away what its own command line names, and a list does not: --header 'NAME: env:VARIABLE', or --user NAME:env:VARIABLE"
            )
        }
        if known.contains(room) { lines.append("with --on-full wait the same command waits for room and goes on") }
        if tasks.isEmpty || known.contains(where: { $0 == nil || $0 == room || $0?.place == .task }) {
            lines.append(
                "run the same command again, which goes on where it stopped; --tries N has it try more often, such as through a longer outage"
            )
        }
        return lines
    }
}
