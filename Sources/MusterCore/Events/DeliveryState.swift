/// Where the delivery of an event to a subscription stands.
public enum DeliveryState: String, Sendable, Codable, CaseIterable {
    /// Under way, or waiting for its next try. Exits: `delivered`, `dead`.
    case pending
    /// The receiver has said 2xx. Exit: `pending`, when replayed.
    case delivered
    /// Every try of the schedule has failed. Exit: `pending`, when replayed.
    case dead
}
