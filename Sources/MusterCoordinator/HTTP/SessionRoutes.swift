import HTTPTypes
import Hummingbird
import MusterAPI
import MusterCore

/// `/v1/sessions`: the sessions and syncs of workers.
struct SessionRoutes: Sendable {
    let syncs: SyncService

    func add(to group: RouterGroup<some RequestContext>) {
        group.post("sessions") { request, _ in
            try Answer.json(try await syncs.open(try await request.document(SessionRequest.self)), status: .created)
        }
        group.post("sessions/:id/sinks") { request, context in
            let id = try session(context)
            return try Answer.json(try await syncs.add(try await request.document(SessionSinkRequest.self), to: id))
        }
        group.post("sessions/:id/sync") { request, context in
            let id = try session(context)
            let sync = try await request.document(SyncRequest.self)
            return try Answer.json(try await syncs.metrics.time(.syncs) { try await syncs.sync(id, sync) })
        }
        group.delete("sessions/:id") { request, context in
            let isLost = try request.flag("lost")
            try await syncs.close(try session(context), isLost: isLost)
            return Answer.empty
        }
    }

    private func session(_ context: some RequestContext) throws(Problem) -> SessionID {
        guard let id = Int64(try context.path("id")), id > 0 else {
            throw Problem(.invalidRequest, "the id of a session is a number of 64 bits above 0")
        }
        return SessionID(id)
    }
}
