import Synchronization

/// The part files that are open in this process, so that all chunks of a part share one.
///
/// It keeps none of them open: each job that works on a part holds it, and the last to drop it closes it.
final class PartRegistry: Sendable {
    private struct Entry {
        weak var part: PartFile?
    }

    private let entries = Mutex<[PartName: Entry]>([:])

    /// The open part of that name, unless a failure made it unusable.
    func open(_ name: PartName) -> PartFile? {
        // The last reference must be released after the lock: `deinit` of a part calls `forget`, which takes the lock.
        let part = entries.withLock { $0[name]?.part }
        guard let part, !part.isUseless else { return nil }
        return part
    }

    /// The open part of that name, if there is one. Throws the failure that made it unusable, if there was one: its bytes
    /// can't be trusted.
    func trusted(_ name: PartName) throws(StorageError) -> PartFile? {
        let part = entries.withLock { $0[name]?.part }
        try part?.refuseIfSpoiled()
        return part
    }

    /// Adds a part that was just opened. Returns the part to use, which is another job's if that job was faster.
    func add(_ part: PartFile, as name: PartName) -> PartFile {
        let faster = entries.withLock { entries -> PartFile? in
            if let other = entries[name]?.part, !other.isUseless { return other }
            entries[name] = Entry(part: part)
            return nil
        }
        return faster ?? part
    }

    /// Drops the entry of a part that is gone.
    func forget(_ name: PartName) {
        entries.withLock { entries in
            if let entry = entries[name], entry.part == nil { entries[name] = nil }
        }
    }

    /// Makes the open part of that name unusable, if there is one.
    func spoil(_ name: PartName, _ reason: StorageError) {
        let part = entries.withLock { $0[name]?.part }
        part?.spoil(reason)
    }

    /// Makes every open part unusable: their content is in doubt.
    func spoil(_ reason: StorageError) {
        let parts = entries.withLock { $0.values.compactMap(\.part) }
        for part in parts { part.spoil(reason) }
    }
}
