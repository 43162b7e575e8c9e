import MusterAPI
import MusterCore

/// Gives URLs names of their own: `s0.bin` and `d2/s0.bin` end in the same, and the second file becomes `s0 (2).bin`.
struct SharedNames {
    /// Where a URL was given.
    enum Place: Hashable, Sendable {
        /// In a line of the manifest, counted from 1.
        case line(Int)
        /// On the command line, counted from 0.
        case argument(Int)
    }

    /// The most names that are printed one by one.
    static let told = 20

    private var wishes: [(place: Place, url: String, path: DestinationPath)] = []
    /// The explicit paths of tasks, with the URLs of these tasks.
    private var taken: [String: Set<String>] = [:]

    /// No names yet.
    init() {}

    /// Adds a URL and the name that it suggests.
    mutating func add(_ url: String, at place: Place, path: DestinationPath) {
        wishes.append((place, url, path))
    }

    /// Adds a task that is no bare URL, and so has its name already.
    mutating func take(_ task: TaskSpecification) {
        taken[task.path.string, default: []].insert(task.sources[0].string)
    }

    /// Numbered names for the URLs that need one.
    ///
    /// - Parameter isWanted: whether a path may belong to a task that was not added here.
    /// - Returns: the names of the URLs that don't have their suggested names.
    func numbered(isWanted: (String) -> Bool) -> [Place: String] {
        // The names given to URLs, grouped by the names that the URLs suggest.
        var owners: [String: [String: String]] = [:]
        for (path, urls) in taken { owners[path] = urls.reduce(into: [:]) { $0[$1] = path } }
        var numbers: [String: Int] = [:]
        var given: Set<String> = []
        var names: [Place: String] = [:]
        for (place, url, path) in wishes {
            if let name = owners[path.string]?[url] {
                // The same URL again is the same task again.
                if name != path.string { names[place] = name }
            } else if owners[path.string] == nil {
                owners[path.string] = [url: path.string]
            } else if let name = Self.free(
                path, from: &numbers[path.string, default: 2],
                isTaken: {
                    given.contains($0) || isWanted($0)
                })
            {
                given.insert(name)
                owners[path.string]?[url] = name
                names[place] = name
            }
        }
        return names
    }

    private static func free(
        _ path: DestinationPath, from number: inout Int, isTaken: (String) -> Bool
    ) -> String? {
        while let candidate = path.numbered(number) {
            number += 1
            if !isTaken(candidate.string) { return candidate.string }
        }
        return nil
    }
}
