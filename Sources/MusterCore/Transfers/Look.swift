/// After which failures of a request for a range a source is asked whether it serves a plain GET (`docs/range-contract.md`, "The ladder").
///
/// The bytes of a content version are given up only for what was seen. A look costs a request, so that it is made where a failure is about to
/// count for good.
public enum Look: String, Sendable, Hashable, Codable, CaseIterable {
    /// After refusals that further tries don't change.
    case refused
    /// After those, and where the body of a part ends early, as others of the chunk have before.
    case ended
    /// After all failures that may have to do with the way of asking.
    case failed
    /// Before the first request, which is the plain GET itself: the source told requests for a range to wait, and they have waited.
    case atOnce
}
