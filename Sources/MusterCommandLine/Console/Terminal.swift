import Glibc
import Synchronization
import SystemPackage

/// What can be known of a terminal.
enum Terminal {
    /// Columns and rows of a terminal.
    struct Size: Hashable, Sendable {
        /// Characters in a line.
        var columns: Int
        /// Lines on the screen.
        var rows: Int
    }

    private static let continued = Atomic<Int>(0)
    private static let watchesSignal: Void = {
        _ = continued.load(ordering: .relaxed)
        _ = signal(SIGCONT) { _ in Terminal.continued.add(1, ordering: .relaxed) }
    }()

    /// How often this process has gone on after it was stopped, as by Ctrl-Z and `fg`, since the first time that somebody asked. The shell has written to the
    /// terminal meanwhile.
    static var continuations: Int {
        watchesSignal
        return continued.load(ordering: .relaxed)
    }

    /// Whether somebody looks at what is written there.
    static func isTerminal(_ descriptor: FileDescriptor) -> Bool {
        isatty(descriptor.rawValue) == 1
    }

    /// The size at this moment; 80 × 24 where the terminal doesn't tell.
    static func size(of descriptor: FileDescriptor) -> Size {
        var window = winsize()
        guard ioctl(descriptor.rawValue, UInt(TIOCGWINSZ), &window) == 0, window.ws_col > 0, window.ws_row > 0 else {
            return Size(columns: 80, rows: 24)
        }
        return Size(columns: Int(window.ws_col), rows: Int(window.ws_row))
    }

    /// Whether colours may be used, by the convention of no-color.org and for terminals that can't do anything.
    static func allowsColour(environment: [String: String]) -> Bool {
        (environment["NO_COLOR"] ?? "").isEmpty && environment["TERM"] != "dumb"
    }
}
