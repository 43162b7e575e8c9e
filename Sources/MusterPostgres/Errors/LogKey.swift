/// The keys of all log metadata of this module.
enum LogKey {
    static let attempt = "attempt"
    static let error = "error"
    static let message = "message"
    static let severity = "severity"
    static let sqlState = "sqlstate"
}
