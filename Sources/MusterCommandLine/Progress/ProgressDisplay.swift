import MusterAPI
import SystemPackage

/// Shows progress in the form that suits its reader: redrawn in place, as plain lines, or not at all.
struct ProgressDisplay {
    /// The kind of reader.
    private enum Mode {
        /// A terminal: lines at its bottom.
        case live(FileDescriptor)
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
            mode = .live(terminal)
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

    /// How many tasks in trouble are queried to be shown.
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

    /// Shows a snapshot; as plain lines only what is new in it.
    mutating func show(_ snapshot: ProgressSnapshot, troubles: [TaskDocument], now: ContinuousClock.Instant) throws {
        switch mode {
        case .live(let terminal):
            try console.show(view.lines(snapshot, width: Terminal.size(of: terminal).columns), on: terminal)
        case .plain(var progress):
            for line in progress.lines(troubles, of: snapshot.group, now: now) { console.remark(line) }
            let line = progress.line(snapshot, now: now)
            mode = .plain(progress)
            if let line { try console.line(line) }
        case .silent:
            break
        }
    }

    /// Prints how a file ended. Failures are remarks, not results.
    func tell(_ news: FileNews) throws {
        switch news.outcome {
        case .finished: if printsFinishedFiles { try console.line(news.line) }
        case .failed: if printsFailures { console.remark(news.line) }
        }
    }

    /// Removes the lines that are redrawn in place, so that results can follow.
    func finish() throws { try console.clear() }

    /// Prints how far the group came when the wait stops before its end: the tasks in trouble, the last snapshot, and with `gain` the average speed.
    func stop(_ snapshot: ProgressSnapshot, _ gain: Gain?, troubles: [TaskDocument]) throws {
        try finish()
        guard printsFailures else { return }
        for line in PlainTroubles.lines(troubles, of: snapshot.group) { console.remark(line) }
        console.lastLine(gain.map { PlainProgress.stopped(snapshot, $0) } ?? PlainProgress.sentence(snapshot))
    }
}
