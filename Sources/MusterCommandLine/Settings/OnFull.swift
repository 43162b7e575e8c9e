/// What `get` does when the disk is full.
enum OnFull: String, CaseIterable, Sendable {
    /// It ends, and says what is missing. This is the default: nothing is lost, since the same command goes on where this one stopped,
    /// while a script that waits for the user to make room would wait for ever.
    case fail
    /// It waits for room, and goes on by itself.
    case wait
}
