import MusterAPI
import MusterCore

/// Opens the worker's sessions and begins them in its sinks. A sink whose directory a coordinator refuses, or that is not there yet, is
/// left out, so that the other sinks work (I19), and is asked for with each probe that finds it.
struct SessionOpener: Sendable {
    let configuration: WorkerConfiguration
    let client: MusterClient
    let stations: [SinkStation]
    /// Called with the state of a sink that has come too late for an answer.
    let late: @Sendable (String, ProbeResult) -> Void

    /// Asks for a session; `nil` when the call was cancelled. It is refused as a whole only if no sink is left.
    func open(_ wanted: SessionRequest) async -> MachineInput? {
        var request = wanted
        let marks = stations.compactMap { station in station.mark.map { (station.name, $0) } }
        if !marks.isEmpty { request.marks = Dictionary(uniqueKeysWithValues: marks) }
        let replaced = stations.map(\.name).filter(isReplaced)
        if !replaced.isEmpty { request.replaced = replaced }
        var refused: [String: SinkTrouble] = [:]
        while true {
            do {
                let document = try await client.openSession(request)
                return .sessionOpened(document, sinks: await begin(document, without: refused))
            } catch {
                guard var problem = error as? Problem, let sink = problem.refusedSink(of: request) else {
                    return CallFailure(error).map { .sessionRefused($0) }
                }
                refused[sink] = SinkTrouble(kind: .storage, detail: problem.detail)
                request.sinks.removeAll { $0 == sink }
                request.marks?[sink] = nil
                request.replaced?.removeAll { $0 == sink }
                guard request.sinks.isEmpty else { continue }
                for station in stations { station.leave() }
                if refused.count > 1 {
                    let reasons = wanted.sinks.compactMap { name in refused[name].map { "\(name): \($0.detail)" } }
                    problem = Problem(problem.code, reasons.joined(separator: "; "))
                }
                return CallFailure(problem).map { .sessionRefused($0) }
            }
        }
    }

    /// Checks a sink. If the session was opened without it, asks for it once more.
    func probe(_ station: SinkStation) async -> ProbeResult {
        let found = await station.probe()
        guard case .well = found, let absence = station.absence else { return found }
        let request = SessionSinkRequest(
            name: station.name, mark: station.mark, isReplaced: isReplaced(station.name) ? true : nil)
        do {
            let document = try await client.addSink(request, to: absence.session.session)
            return await station.join(absence.session, mark: document.mark) { late(station.name, $0) }
        } catch let problem as Problem where problem.code == .conflict {
            let trouble = SinkTrouble(kind: .storage, detail: problem.detail)
            station.renewAbsence(from: absence.session, trouble)
            return .trouble(trouble)
        } catch {
            return .trouble(absence.trouble)
        }
    }

    private static let unknown = SinkTrouble(kind: .storage, detail: "its directory is not known yet")

    private func isReplaced(_ sink: String) -> Bool {
        configuration.sinks.contains { $0.name == sink && $0.identity == .replaced }
    }

    /// Begins the session in every sink that it has, before any work in these sinks is leased to it.
    private func begin(_ document: SessionDocument, without refused: [String: SinkTrouble]) async -> [SinkStatus] {
        guard let session = document.installation.flatMap({ SinkSession(installation: $0, session: document.id) })
        else {
            let detail = "the coordinator does not say of which database the session is"
            return stations.map { SinkStatus(name: $0.name, parked: .storage, detail: detail) }
        }
        return await withTaskGroup(of: SinkStatus.self) { group in
            for station in stations {
                group.addTask {
                    if let trouble = refused[station.name] {
                        station.stayOut(of: session, trouble)
                        return SinkStatus(station.name, .trouble(trouble))
                    }
                    let mark = document.marks?[station.name]
                    guard mark != nil || !station.needsMark else {
                        // Told as soon as the directory is found, by `probe`: the sinks that are there do not wait for it.
                        let trouble = station.trouble ?? Self.unknown
                        station.stayOut(of: session, trouble)
                        return SinkStatus(station.name, .trouble(trouble))
                    }
                    return SinkStatus(
                        station.name, await station.begin(session, mark: mark) { late(station.name, $0) })
                }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
    }
}

extension SinkStatus {
    /// The state of a sink, as it was found.
    init(_ name: String, _ result: ProbeResult) {
        switch result {
        case .well(let freeBytes): self.init(name: name, freeBytes: freeBytes)
        case .trouble(let trouble): self.init(name: name, parked: trouble.kind, detail: trouble.detail)
        case .sessionEnded: self.init(name: name, parked: .storage, detail: "the session is over there")
        }
    }
}

extension Problem {
    /// The sink of a request to open a session whose directory is refused; `nil` for a refusal of anything else.
    fileprivate func refusedSink(of request: SessionRequest) -> String? {
        let prefix = "/sinks/"
        guard code == .conflict, let pointer, pointer.hasPrefix(prefix),
            let place = Int(pointer.dropFirst(prefix.count)), request.sinks.indices.contains(place)
        else { return nil }
        return request.sinks[place]
    }
}
