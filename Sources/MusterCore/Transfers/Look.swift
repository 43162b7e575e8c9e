/// After which failures of a request for a range a source is asked whether it serves a plain GET (`docs/range-contract.md`, "The ladder").
///
/// The bytes of a content version are given up only after a plain GET was seen to be served. A look costs a request, so it is made only
/// when a failure is about to become final.
public enum Look: String, Sendable, Hashable, Codable, CaseIterable {
    /// After refusals that further tries don't change.
    case refused
    /// After such refusals, and when the body of a part ends early, as earlier ones of the chunk did.
    case ended
    /// After all failures that may be caused by the way of asking.
    case failed
    /// Before the first request, which is the plain GET itself: the source told range requests to wait, and they have waited.
    case atOnce
}
