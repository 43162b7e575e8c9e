/// What followed a try that did not succeed.
public enum AttemptOutcome: String, Sendable, Hashable, Codable, CaseIterable {
    /// The same source was to be tried again.
    case retry
    /// Another source was to be tried.
    case nextSource
    /// The task began with its next content version.
    case startOver
    /// The resolver was asked for a fresh URL.
    case resolve
    /// The chunk was given back unchanged.
    case returned
    /// The task failed.
    case failed
}
