import Glibc
import MusterAPI
import MusterCore

extension Placement {
    /// Bytes that are copied between two calls of `mayContinue`.
    private static let copyBytes: Int64 = 16 << 20

    /// Copies a fenced part to a fresh inode that no other process has open, verifies the copy, and moves it into place (I8).
    mutating func putCopy(
        of part: OpenPart,
        _ order: FinalizeOrder,
        _ check: ContentCheck
    ) throws(StorageError) -> FinalizeOutcome {
        guard part.status.size == order.size else {
            return .corrupt(
                [ByteRange(first: order.size)],
                reason: "\(order.part.string) has \(part.status.size) bytes instead of \(order.size)"
            )
        }
        return try withCopy(of: part.descriptor, order, check) { (placement, copy) throws(StorageError) in
            try placement.move(
                Candidate(
                    name: order.copy,
                    identity: copy.file.status.identity,
                    part: part.status.identity,
                    digests: copy.digests
                ),
                order,
                check
            )
        }
    }

    /// The part is gone and its file seems to be in place. But the inode of the file may be the part's, so a fresh one
    /// replaces it.
    mutating func renew(
        at spot: Spot,
        _ order: FinalizeOrder,
        _ check: ContentCheck
    ) throws(StorageError) -> Settled {
        let file: OpenPart
        switch try openDestination(at: spot) {
        case .file(let opened): file = opened
        case .gone: return .gone
        case .foreign(let reason): return .foreign(reason)
        }
        guard file.status.size == order.size else { return .foreign("its size differs") }
        let isAdopted = !isOwn(file, order)
        let outcome = try withCopy(
            of: file.descriptor, order, check, isAdopted: isAdopted
        ) { (placement, copy) throws(StorageError) in
            guard placement.watch.mayContinue() else { return .stopped }
            try placement.replace(file.status.identity, by: order.copy, at: spot)
            placement.touch(spot.place)
            try placement.dropRemains(of: order, isPartMoved: true)
            return placement.finished(order, copy.digests, at: spot)
        }
        switch outcome {
        case .inPlace, .stopped, .overtaken: return .outcome(outcome)
        case .corrupt(_, let reason): return .foreign(reason)
        case .digestMismatch: return .foreign("its digest differs")
        }
    }

    /// A verified, durable copy, by the name `order.copy`.
    struct FreshCopy {
        let file: OpenPart
        let digests: [ContentDigest]
    }

    private mutating func withCopy(
        of source: Descriptor,
        _ order: FinalizeOrder,
        _ check: ContentCheck,
        isAdopted: Bool = false,
        _ body: (inout Placement, FreshCopy) throws(StorageError) -> FinalizeOutcome
    ) throws(StorageError) -> FinalizeOutcome {
        // The copy is gone already if it was put in place. If it can't be deleted now, it is deleted with the session's
        // directory.
        defer { _ = try? own.remove(order.copy.string) }
        return try makeCopy(of: source, order, check, isAdopted: isAdopted, body)
    }

    private mutating func makeCopy(
        of source: Descriptor,
        _ order: FinalizeOrder,
        _ check: ContentCheck,
        isAdopted: Bool = false,
        _ body: (inout Placement, FreshCopy) throws(StorageError) -> FinalizeOutcome
    ) throws(StorageError) -> FinalizeOutcome {
        let copy = try makeCopy(order)
        guard try copyContent(of: source, to: copy.descriptor, order) else { return .stopped }
        switch try check.examine(copy.descriptor, size: order.size, name: order.copy.string) {
        case .good(let digests):
            try settle(copy, order, isSynchronized: false, isAdopted: isAdopted)
            return try body(&self, FreshCopy(file: copy, digests: digests))
        case .corrupt(let ranges, let reason): return .corrupt(ranges, reason: reason)
        case .digestMismatch(let expected, let found): return .digestMismatch(expected: expected, found: found)
        case .stopped: return .stopped
        }
    }

    /// Makes an empty copy in the session's own directory, and deletes one that an earlier try of the lease left there.
    func makeCopy(_ order: FinalizeOrder) throws(StorageError) -> OpenPart {
        do throws(SystemError) {
            _ = try own.remove(order.copy.string)
            let (descriptor, status) = try own.file(order.copy.string, creation: .always)
            return OpenPart(descriptor: descriptor, status: status)
        } catch {
            throw own.cause(of: error).inSink("making \(order.copy.string)")
        }
    }

    func copyContent(
        of source: Descriptor,
        to copy: Descriptor,
        _ order: FinalizeOrder
    ) throws(StorageError) -> Bool {
        var offset: Int64 = 0
        while offset < order.size {
            guard watch.mayContinue() else { return false }
            let count: Int
            do {
                count = try source.copy(
                    to: copy,
                    at: offset,
                    length: Int(min(Self.copyBytes, order.size - offset))
                )
            } catch {
                guard [EXDEV, EOPNOTSUPP, EINVAL, ENOSYS, EPERM].contains(error.number) else {
                    throw error.inPart("copying \(order.part.string)")
                }
                count = 0
            }
            // Some file systems can't copy, and some report that there is nothing to copy: then use our own buffer.
            if count == 0 { return try copyByHand(source, to: copy, from: offset, order) }
            offset += Int64(count)
        }
        return true
    }

    private func copyByHand(
        _ source: Descriptor,
        to copy: Descriptor,
        from offset: Int64,
        _ order: FinalizeOrder
    ) throws(StorageError) -> Bool {
        guard let rest = ByteRange(start: offset, end: order.size) else { return true }
        var position = offset
        var failure: SystemError?
        let isWhole = try ContentReader(source).read(
            rest,
            of: order.part.string,
            while: { failure == nil && watch.mayContinue() }
        ) { bytes in
            do throws(SystemError) {
                try copy.write(bytes, at: position)
                position += Int64(bytes.count)
            } catch {
                failure = error
            }
        }
        if let failure { throw failure.inPart("copying \(order.part.string)") }
        return isWhole
    }
}
