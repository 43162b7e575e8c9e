import MusterAPI
import SystemPackage

/// Shows progress the way its reader can take it: redrawn in place, as plain lines, or not at all.
struct ProgressDisplay {
    /// Who reads.
    private enum Mode {
        /// A terminal: a region at its bottom.
        case live(LiveRegion, on: FileDescriptor)
        /// A pipe: lines.
        case plain(PlainProgress)
        /// A program that wants the result alone.
        case silent
    }

    private var mode: Mode
    private let console: Console
    private let view: ProgressView

    /// A display on the console's terminal, or else on its standard output unless that carries JSON.
    init(console: Console, environment: [String: String]) {
        self.console = console
        view = ProgressView(style: ProgressView.Style(environment: environment))
        if let terminal = console.liveTerminal, environment["TERM"] != "dumb" {
            mode = .live(LiveRegion(), on: terminal)
        } else {
            mode = console.json ? .silent : .plain(PlainProgress())
        }
    }

    /// Whether the files under way are shown.
    var showsFiles: Bool {
        switch mode {
        case .live: true
        case .plain, .silent: false
        }
    }

    /// How many tasks in trouble are looked at.
    var shownTroubles: Int {
        switch mode {
        case .live: ProgressSnapshot.shownFiles
        case .plain: PlainTroubles.most
        case .silent: 0
        }
    }

    /// Whether a line for each failed file is wanted.
    var printsFailures: Bool {
        switch mode {
        case .live, .plain: true
        case .silent: false
        }
    }

    /// Whether a line for each finished file is wanted, too.
    var printsFinishedFiles: Bool {
        switch mode {
        case .plain: true
        case .live, .silent: false
        }
    }

    /// Shows the state of things.
    mutating func show(_ snapshot: ProgressSnapshot, troubles: [TaskDocument], now: ContinuousClock.Instant) throws {
        switch mode {
        case .live(var region, let terminal):
            let size = Terminal.size(of: terminal)
            let text = region.redraw(view.lines(snapshot, width: size.columns), size: size)
            mode = .live(region, on: terminal)
            try console.draw(text, on: terminal)
        case .plain(var progress):
            let lines = progress.lines(snapshot, troubles: troubles, now: now)
            mode = .plain(progress)
            for line in lines { try console.line(line) }
        case .silent:
            break
        }
    }

    /// Prints a line that stays.
    mutating func print(_ line: String) throws {
        switch mode {
        case .live(var region, let terminal):
            let size = Terminal.size(of: terminal)
            let text = region.clear(size: size)
            mode = .live(region, on: terminal)
            try console.draw(text + Console.fitted(line, to: size.columns), on: terminal)
        case .plain:
            try console.line(line)
        case .silent:
            break
        }
    }

    /// Takes away what stands in place, so that results can follow.
    mutating func finish() throws {
        guard case .live(var region, let terminal) = mode else { return }
        let text = region.clear(size: Terminal.size(of: terminal))
        mode = .live(region, on: terminal)
        try console.draw(text, on: terminal)
    }

    /// Says how far it came, where nobody waits for the end: the last that was seen stays, with what was in trouble.
    mutating func stop(_ snapshot: ProgressSnapshot, troubles: [TaskDocument]) throws {
        try finish()
        guard printsFailures else { return }
        for line in PlainTroubles.lines(troubles, of: snapshot.group) { try console.line(line) }
        try console.line(PlainProgress.line(snapshot))
    }
}
