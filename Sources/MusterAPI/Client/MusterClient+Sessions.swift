public import MusterCore

extension MusterClient {
    /// `POST /v1/sessions`.
    public func openSession(_ request: SessionRequest) async throws -> SessionDocument {
        try await call(
            "POST", "/v1/sessions", body: Self.json(request), timeout: .seconds(10), inSession: true,
            as: SessionDocument.self)
    }

    /// `POST /v1/sessions/{id}/sinks`: adds a sink that the session was opened without. A repetition changes nothing.
    public func addSink(_ request: SessionSinkRequest, to session: SessionID) async throws -> SessionSinkDocument {
        try await call(
            "POST", "/v1/sessions/\(session)/sinks", body: Self.json(request), timeout: .seconds(10), inSession: true,
            as: SessionSinkDocument.self)
    }

    /// `POST /v1/sessions/{id}/sync`.
    public func sync(_ session: SessionID, _ request: SyncRequest) async throws -> SyncResponse {
        try await call(
            "POST", "/v1/sessions/\(session)/sync", body: Self.json(request),
            timeout: .seconds(10) + .milliseconds(request.waitMilliseconds), inSession: true, as: SyncResponse.self)
    }

    /// `DELETE /v1/sessions/{id}`: every write has stopped, and the remaining leases are given back.
    public func closeSession(_ session: SessionID) async throws {
        try await exchange("DELETE", "/v1/sessions/\(session)", timeout: .seconds(5), inSession: true)
    }

    /// `DELETE /v1/sessions/{id}?lost=true`: the process ended without closing its session; its leases are taken back as if the session had expired.
    public func loseSession(_ session: SessionID) async throws {
        try await exchange(
            "DELETE", "/v1/sessions/\(session)", query: [("lost", "true")], timeout: .seconds(5), inSession: true)
    }
}
