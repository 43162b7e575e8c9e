/// Checks of the database against the sinks (adr/0048).
extension MusterClient {
    /// `POST /v1/checks`: begins a check, or joins the same one if that is under way.
    public func beginCheck(_ request: CheckRequest) async throws -> CheckDocument {
        try await call("POST", "/v1/checks", body: Self.json(request), as: CheckDocument.self)
    }

    /// `GET /v1/checks`: the checks that are kept, the latest first.
    public func checks() async throws -> Page<CheckDocument> {
        try await call("GET", "/v1/checks", as: Page<CheckDocument>.self)
    }

    /// `GET /v1/checks/{id}`.
    public func check(_ id: Int64) async throws -> CheckDocument {
        try await call("GET", "/v1/checks/\(id)", as: CheckDocument.self)
    }

    /// `DELETE /v1/checks/{id}`: ends a check before it is complete.
    public func stopCheck(_ id: Int64) async throws {
        try await exchange("DELETE", "/v1/checks/\(id)", removes: true)
    }

    /// A page of `GET /v1/checks/{id}/findings`.
    public func findings(of check: Int64, after: String? = nil, limit: Int? = nil) async throws -> Page<FindingDocument>
    {
        try await call(
            "GET", "/v1/checks/\(check)/findings", query: [("after", after), ("limit", limit.map(String.init))],
            as: Page<FindingDocument>.self)
    }
}
