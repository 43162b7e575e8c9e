import Glibc
import Synchronization
import SystemPackage

/// Properties of a terminal.
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

    /// How often this process was stopped and continued, as by Ctrl-Z and `fg`, since the first read of this property. The shell has written to the
    /// terminal meanwhile.
    static var continuations: Int {
        watchesSignal
        return continued.load(ordering: .relaxed)
    }

    /// Whether the descriptor is a terminal.
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

    /// Whether colours may be used: not with `NO_COLOR` (no-color.org), and not on a terminal that can't show them (`TERM=dumb`).
    static func allowsColour(environment: [String: String]) -> Bool {
        (environment["NO_COLOR"] ?? "").isEmpty && environment["TERM"] != "dumb"
    }
}
