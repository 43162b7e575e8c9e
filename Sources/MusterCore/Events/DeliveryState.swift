/// The state of the delivery of an event to a subscription.
public enum DeliveryState: String, Sendable, Codable, CaseIterable {
    /// Under way, or waiting for its next try. Exits: `delivered`, `dead`.
    case pending
    /// The receiver has answered 2xx. Exit: `pending`, when replayed.
    case delivered
    /// Every try of the schedule has failed. Exit: `pending`, when replayed.
    case dead
}
