import MusterCore

/// Looks at one page of a sink for a check (adr/0048); blocks, and changes no file.
///
/// What is missing in a sink that can't be reached says nothing, so the sink is checked before and after the look.
struct SinkCheck {
    private let sink: SinkDirectory
    private let listing: PartListing
    /// Asked before so many bytes are read; `false` ends the look.
    private let mayTake: (Int64) -> Bool

    /// A look at a sink.
    ///
    /// - Parameter listing: the names that earlier looks have listed.
    init(_ sink: SinkDirectory, listing: PartListing = PartListing(), mayTake: @escaping (Int64) -> Bool) {
        self.sink = sink
        self.listing = listing
        self.mayTake = mayTake
    }

    /// Looks at a page.
    ///
    /// - Returns: what was seen; `nil` if the look was ended.
    /// - Throws: what is wrong with the sink as a whole.
    func report(on order: CheckOrder) throws(StorageError) -> CheckReport? {
        try sink.check()
        var report = CheckReport(on: order)
        let isWhole: Bool
        switch order.kind {
        case .files: isWhole = try lookAtFiles(order, &report)
        case .parts, .suspects: isWhole = try lookAtParts(order, &report)
        case .names: isWhole = try listNames(order, &report)
        case .goOn: isWhole = false
        }
        try sink.check()
        return isWhole ? report : nil
    }

    private func lookAtFiles(_ order: CheckOrder, _ report: inout CheckReport) throws(StorageError) -> Bool {
        var walk = SinkWalk(sink, isLooking: true)
        var seen: [SeenFile] = []
        for file in order.files ?? [] {
            guard mayTake(Limits.checkLook.bytes) else { return false }
            if walk.isFull { walk.startOver() }
            var look = FileLook(file, installation: sink.session.installation, isDeep: order.isDeep, mayTake: mayTake)
            switch try look.run(&walk) {
            case .fine: break
            case .unproven: report.unproven += 1
            case .told(let told): seen.append(told)
            case .stopped: return false
            }
            report.bytes += look.bytes
            report.looked += 1
        }
        report.files = seen
        return true
    }

    /// Reports of expected parts those that are missing or short, of suspects those that are there.
    private func lookAtParts(_ order: CheckOrder, _ report: inout CheckReport) throws(StorageError) -> Bool {
        var seen: [SeenPart] = []
        var sessions: [SessionID] = []
        do {
            let parts = try sink.partsDirectory()
            for part in order.parts ?? [] {
                guard mayTake(Limits.checkLook.bytes) else { return false }
                let name = PartName(part.task, version: part.version)
                var found = SeenPart(task: part.task, version: part.version)
                if let status = try parts.status(of: name.string), status.kind == .file {
                    found.size = status.size
                }
                let isNews = part.bytes.map { found.size ?? -1 < $0 } ?? (found.size != nil)
                if isNews, !isPlaced(part) { seen.append(found) }
                report.looked += 1
            }
            for session in order.sessions ?? [] {
                let entry = try sink.home.status(of: "\(session)")
                if entry?.kind == .directory { sessions.append(session) }
            }
        } catch {
            throw error.inSink("looking at parts in \(sink.path)")
        }
        report.parts = seen
        report.sessions = sessions
        return true
    }

    /// Whether the task's own file stands where that of a part is to be put: its worker died before it said so.
    private func isPlaced(_ part: CheckedPart) -> Bool {
        guard let path = try? part.path.map({ try DestinationPath(validating: $0) }) else { return false }
        var walk = SinkWalk(sink, isLooking: true)
        guard let place = try? walk.place(of: path, making: false),
            let (file, _) = try? place.directory.file(place.name, creation: .never)
        else { return false }
        let owner = FileMark.Owner(installation: sink.session.installation, task: part.task)
        return FileMark.read(file, path: path)?.owner == owner
    }

    /// Lists the next names of parts, and at the beginning the directories of sessions and of other installations.
    private func listNames(_ order: CheckOrder, _ report: inout CheckReport) throws(StorageError) -> Bool {
        guard mayTake(Limits.checkLook.bytes) else { return false }
        let after = order.after ?? ""
        do {
            let parts = try sink.partsDirectory()
            let page = try listing.page(after: after, of: order.epoch) { () throws(SystemError) -> [String] in
                try parts.names()
            }
            report.parts = page.names.map { SeenPart(task: $0.task, version: $0.version) }
            report.last = page.last
            guard after.isEmpty else { return true }
            let sessions = try sink.home.names().compactMap { SinkSession.ofDirectory($0) }.filter {
                $0 != sink.session.session
            }
            report.sessions = Array(sessions.sorted { $0.rawValue < $1.rawValue }.prefix(Limits.checkNames))
            let installations = try sink.root.directory(DestinationPath.reservedComponent).names().filter {
                $0 != sink.session.installation && SinkSession(installation: $0, session: sink.session.session) != nil
            }
            report.installations = Array(installations.sorted().prefix(Limits.checkInstallations))
            let isCut = sessions.count > Limits.checkNames || installations.count > Limits.checkInstallations
            report.isCut = isCut ? true : nil
            return true
        } catch {
            throw error.inSink("listing the parts in \(sink.path)")
        }
    }
}
