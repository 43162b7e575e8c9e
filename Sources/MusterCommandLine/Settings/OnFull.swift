/// What `get` does when the disk is full.
enum OnFull: String, CaseIterable, Sendable {
    /// It ends, and says what is missing. The default: nothing is lost by it, since the same command goes on where this one
    /// was, and a script that waits for somebody who makes room waits for ever.
    case fail
    /// It waits for room, and goes on by itself.
    case wait
}
