import MusterAPI
import MusterCore

/// Gives URLs of a command line names of their own: `s0.bin` and `d2/s0.bin` end in the same, and the second file becomes `s0 (2).bin`.
struct SharedNames {
    private var requests: [(request: TaskRequest, path: DestinationPath)] = []
    /// The names that URLs want.
    private var wanted: Set<String> = []
    /// The names that tasks of a manifest have of those, with the URLs that have them.
    private var taken: [String: Set<String>] = [:]

    /// Names of nothing yet.
    init() {}

    /// Adds a URL and the name that it suggests.
    mutating func add(_ request: TaskRequest, path: DestinationPath) {
        requests.append((request, path))
        wanted.insert(path.string)
    }

    /// A task of a manifest has a name already.
    mutating func take(_ task: TaskSpecification) {
        // Numbers are for names that URLs want: others are none of them.
        guard wanted.contains(task.path.string) else { return }
        taken[task.path.string, default: []].insert(task.sources[0].string)
    }

    /// The requests, with names of their own where they need one, and a line about each of those.
    func numbered() -> (requests: [TaskRequest], renamings: [String]) {
        var names = wanted
        // Names by URLs, by the names that these want.
        var owners: [String: [String: String]] = [:]
        for (path, urls) in taken { owners[path] = urls.reduce(into: [:]) { $0[$1] = path } }
        var numbers: [String: Int] = [:]
        var result: [TaskRequest] = []
        var renamings: [String] = []
        for (request, path) in requests {
            var request = request
            let url = request.urls[0]
            var known = owners[path.string] ?? [:]
            if let name = known[url] {
                // The same URL again is the same task again.
                if name != path.string { request.path = name }
            } else if known.isEmpty {
                known[url] = path.string
            } else if let name = Self.free(path, from: &numbers[path.string, default: 2], names) {
                names.insert(name)
                known[url] = name
                request.path = name
                renamings.append("\(path.string) is the name of another one; \(url) is stored as \(name)")
            }
            owners[path.string] = known
            result.append(request)
        }
        return (result, renamings)
    }

    private static func free(_ path: DestinationPath, from number: inout Int, _ names: Set<String>) -> String? {
        while let candidate = path.numbered(number) {
            number += 1
            if !names.contains(candidate.string) { return candidate.string }
        }
        return nil
    }
}
