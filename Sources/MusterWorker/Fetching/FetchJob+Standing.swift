import MusterAPI
import MusterCore

/// What stands at the task's path already.
extension FetchJob {
    /// Checks whether the file at the path is the content that the response described. Because of that file, the body was
    /// not taken.
    func adopt(
        _ plan: FetchPlan,
        _ digests: [ContentDigest],
        lastModified: Int64?,
        _ writer: ChunkWriter
    ) async -> JobEnding {
        let size = plan.known.size ?? lease.expectedSize
        do {
            switch try await examine(size: size, digests, lastModified: lastModified, of: plan.known) {
            case .matches(let size, let digests):
                // The part is not needed.
                if !(await drop(writer.part)) {
                    _ = await equipment.purges.submit(PurgeOrder(task: lease.task, version: lease.version, file: nil))
                }
                return .done(nil, plan.learned, found(size, digests))
            case .differs(let reason): return taken(by: "a different file", reason)
            case .overtaken(let reason): return overtaken(reason)
            // The file was removed meanwhile: the next attempt fetches.
            case .absent: return .released(nil, nil)
            case .stopped: return await stop(plan, writer)
            }
        } catch {
            return ending(of: error, durable: nil, nil)
        }
    }

    /// Whether nothing is known of the content yet, and no other session may be at work on it.
    var isFirst: Bool { !lease.planned && lease.start == 0 && lease.resume.offset == 0 && !lease.fenced }

    /// Whether this lease is the one that looks for a file at the path: the first lease of the task, under a rule that does not just make room. After the
    /// loss of a lease, even of an older content version, the file at the path may have been put there for this very task, which placing finds out.
    var looksForFile: Bool {
        guard isFirst, lease.version == 1, lease.policy?.names != .suggested else { return false }
        return switch lease.policy?.ifExists ?? .verify {
        case .verify, .fail: true
        case .replace, .rename: false
        }
    }

    /// The job's ending if an earlier lease has put the file in place (I16). A lease on a whole file is granted again only once nothing of earlier ones can
    /// change what stands there (`may_place`).
    func placedBefore(_ plan: FetchPlan) async throws(StorageError) -> JobEnding? {
        guard lease.fenced, lease.start == 0, !lease.planned || plan.isWholeFile,
            let path = try? DestinationPath(validating: lease.path),
            await context.gate.opened(unless: { control.wish != .work })
        else { return nil }
        let known = PlacedFile.Known(
            mark: mark(lease.representation), representation: lease.representation, prefix: lease.resume,
            digests: plan.digests.all)
        let watch = context.watch(lease.name, control)
        let found = try await station.pool.run { [equipment, lease] () throws(StorageError) in
            try PlacedFile.find(
                known, at: path, isNumbered: lease.policy?.ifExists == .rename,
                recorded: Set(lease.policy?.computeDigests ?? []), in: equipment.directory, watch: watch)
        }
        guard let found else { return nil }
        var finished = self.found(found.content.offset, found.digests)
        if found.path != path { finished.path = found.path.string }
        return .done(found.content, nil, finished)
    }

    func examine(
        size: Int64?,
        _ digests: [ContentDigest],
        lastModified: Int64?,
        of representation: Representation = Representation()
    ) async throws(StorageError) -> ExistingFile.Verdict {
        let path: DestinationPath
        do {
            path = try DestinationPath(validating: lease.path)
        } catch {
            return .differs(reason: error.description)
        }
        let watch = context.watch(lease.name, control)
        while await context.gate.opened(unless: { control.wish != .work }) {
            let verdict = try await equipment.existing.check(
                path: path,
                size: size,
                digests: digests,
                recorded: Set(lease.policy?.computeDigests ?? []),
                lastModified: lastModified,
                mark: mark(representation),
                watch: watch
            )
            guard case .stopped = verdict, !context.gate.isOpen else { return verdict }
        }
        return .stopped
    }

    /// The mark of the task's file of this content version.
    private func mark(_ representation: Representation) -> FileMark {
        let owner = FileMark.Owner(installation: equipment.directory.session.installation, task: lease.task)
        return FileMark(owner: owner, version: lease.version, representation: representation)
    }

    func found(_ size: Int64, _ digests: [ContentDigest]) -> Report.Finished {
        var byName: [String: String] = [:]
        for digest in digests { byName[digest.algorithm.rawValue] = digest.hexadecimal }
        var finished = Report.Finished(size: size, digests: byName)
        finished.wasThere = true
        return finished
    }

    func taken(by what: String, _ reason: String) -> JobEnding {
        refused(.storage, "\(what) stands at \(lease.path): \(reason)")
    }

    /// The task's own file stands at its path, and is other content: the next content version replaces it.
    func overtaken(_ reason: String) -> JobEnding {
        .failed(
            Report.Failure(kind: .changed, detail: "the task's own file at \(lease.path) is other content: \(reason)"),
            nil, nil)
    }
}
