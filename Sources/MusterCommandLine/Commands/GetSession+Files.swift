import MusterAPI
import MusterCore
import MusterWorker
import SystemPackage

/// The state of finished files, of this request and of earlier ones of the directory.
extension GetSession {
    /// The paths of failed tasks whose files are there, unchanged since an earlier group of this request finished them.
    func unchecked(in group: GroupDocument, before generation: Int) async throws -> [String] {
        let groups = try await ownGroups(before: generation)
        guard !groups.isEmpty else { return [] }
        var failed = Set(
            try await Page.all {
                try await patient.tasks(of: group.name, state: .failed, after: $0, limit: Limits.pageSize)
            }.map(\.path))
        var unchecked: [String] = []
        for earlier in groups where !failed.isEmpty {
            for task in try await finished(in: earlier) where failed.contains(task.path) {
                guard let file = try Directories.facts(ofFile: directory.appending(task.path)),
                    try await !isChanged(task, file)
                else { continue }
                failed.remove(task.path)
                unchecked.append(task.path)
            }
        }
        return unchecked.sorted()
    }

    /// The state of a group's finished files.
    struct Findings {
        /// Keys of tasks whose files are gone.
        var missing: Set<String> = []
        /// Paths of files whose content has changed. Muster does not overwrite them.
        var changed: [String] = []
    }

    /// Whether the file of a finished task was changed since. A file that was touched later is read, whatever its modification time is: a copy may have
    /// the time of its original, and it may have the content that the task had.
    func isChanged(_ task: TaskDocument, _ file: Directories.FileFacts) async throws -> Bool {
        if let size = task.bytes.total, size != file.size { return true }
        guard let checksum = task.crc32c else { return task.wasFinished(before: file) }
        guard let finishedAt = task.finishedAt, file.touchedAt > finishedAt.microseconds else { return false }
        return try await FileChecksum.crc32c(of: directory.appending(task.path).string) != checksum
    }

    /// Checks whether the files that a group has finished are there and unchanged.
    func verify(_ group: GroupDocument) async throws -> Findings {
        var findings = Findings()
        guard group.tasks.succeeded > 0 else { return findings }
        var after: String?
        repeat {
            let page = try await patient.tasks(of: group.name, state: .succeeded, after: after, limit: Limits.pageSize)
            for task in page.items {
                guard let file = try Directories.facts(ofFile: directory.appending(task.path)) else {
                    findings.missing.insert(task.key)
                    continue
                }
                if try await isChanged(task, file) { findings.changed.append(task.path) }
            }
            after = page.next
        } while after != nil
        if !findings.changed.isEmpty { try await leaveOut(&findings, replacedSince: group) }
        return findings
    }

    /// Drops changed files from the findings if another request of this directory has put them in place.
    private func leaveOut(_ findings: inout Findings, replacedSince group: GroupDocument) async throws {
        var changed = Set(findings.changed)
        for other in try await earlierGroups() where other.name != group.name && !changed.isEmpty {
            for task in try await finished(in: other) where changed.contains(task.path) {
                guard let file = try Directories.facts(ofFile: directory.appending(task.path)) else { continue }
                if try await !isChanged(task, file) { changed.remove(task.path) }
            }
        }
        findings.changed.removeAll { !changed.contains($0) }
    }
}

/// What other requests of this directory have finished.
extension GetSession {
    /// The files of this request that earlier requests have finished.
    struct Earlier {
        /// The keys, in this request, of files that are there and unchanged.
        var keys: Set<String> = []
        /// Paths of files whose content has changed since.
        var changed: [String] = []
        /// The keys, in this request, of the changed files.
        fileprivate var changedKeys: Set<String> = []

        /// Whether earlier requests have finished no file of this one.
        var isEmpty: Bool { keys.isEmpty && changedKeys.isEmpty }
    }

    /// The longest list that is compared with earlier requests, since the comparison takes memory. The origin is asked about the files of a longer one.
    private static let mostCompared = 100_000

    /// Finds the files that earlier requests have finished with the same options. Their origin is not asked about them again, just as it is not
    /// when the same request is repeated.
    ///
    /// - Parameter own: keys that this request's own group has.
    func finishedEarlier(but own: Set<String> = []) async throws -> Earlier {
        var earlier = Earlier()
        guard transfers.policy?.ifExists ?? .verify == .verify, transfers.policy?.reuse != false,
            survey.count <= Self.mostCompared
        else { return earlier }
        let groups = try await earlierGroups().filter { group in
            group.tasks.succeeded > 0 && group.metadata == settingsMark
                && group.fetchOptions?.contains("decode") ?? false == (transfers.fetch?.decode == true)
                && TransferPolicy.areAlike(group.policy, transfers.policy)
        }
        guard !groups.isEmpty else { return earlier }
        var wanted: [String: (definition: Definition, key: String)] = [:]
        try tasks.visit { task, fetch in
            guard !own.contains(task.key), let definition = Definition(task, fetch: fetch) else { return }
            wanted[task.path.string] = (definition, task.key)
        }
        var changed: [String: String] = [:]
        for group in groups where !wanted.isEmpty {
            for task in try await finished(in: group) {
                guard let (definition, key) = wanted[task.path], definition == Definition(task),
                    let file = try Directories.facts(ofFile: directory.appending(task.path))
                else { continue }
                if try await isChanged(task, file) {
                    changed[task.path] = key
                } else {
                    earlier.keys.insert(key)
                    wanted[task.path] = nil
                    changed[task.path] = nil
                }
            }
        }
        earlier.changed = changed.keys.sorted()
        earlier.changedKeys = Set(changed.values)
        return earlier
    }

    /// The keys of this request without those of files that were finished earlier.
    func lacking(_ earlier: Earlier) throws -> Set<String> {
        var keys: Set<String> = []
        try tasks.visit { task, _ in keys.insert(task.key) }
        return keys.subtracting(earlier.keys).subtracting(earlier.changedKeys)
    }

    /// The groups of `get` in this directory.
    func earlierGroups() async throws -> [GroupDocument] {
        try await StatusCommand.groups(patient).filter { $0.name.hasPrefix(Self.prefix) }
    }

    /// The tasks of a group whose files were put in place.
    func finished(in group: GroupDocument) async throws -> [TaskDocument] {
        try await Page.all {
            try await patient.tasks(of: group.name, state: .succeeded, after: $0, limit: Limits.pageSize)
        }
    }
}

extension TransferPolicy {
    /// Whether two policies make the same files. The rule for files that were there before does not matter.
    fileprivate static func areAlike(_ one: TransferPolicy?, _ other: TransferPolicy?) -> Bool {
        var (one, other) = (one ?? TransferPolicy(), other ?? TransferPolicy())
        (one.ifExists, other.ifExists) = (nil, nil)
        return one == other
    }
}

extension TaskDocument {
    /// Whether a file was written to after its task had finished. The clocks of the database and of a file server may be a second apart. A file
    /// with the origin's modification time counts as unchanged, since that time says nothing.
    fileprivate func wasFinished(before file: Directories.FileFacts) -> Bool {
        guard let finishedAt, file.writtenAt > finishedAt.microseconds + 1_000_000 else { return false }
        return lastModified.flatMap { HTTPDate($0) }?.secondsSince1970 != file.writtenAt / 1_000_000
    }
}
