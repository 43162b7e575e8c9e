extension Plan {
    /// A rule that is broken on purpose, to show that the oracle sees it.
    enum Sabotage: CaseIterable {
        /// Syncs write nothing (I4).
        case syncs
        /// A sync ends before its bytes are on storage: durable offsets are told too early (I4).
        case earlySyncs
        /// No lease names sessions that have to be revoked (I17).
        case revocations
        /// What is left of a task is deleted while its worker may still be writing (I13).
        case holdouts
        /// No lease tells that an earlier one of the same part was lost: the part itself is put in place, in which a stopped writer goes
        /// on when it wakes up (I8).
        case fences
        /// A report under an old epoch counts for the lease that has the chunk now (I1).
        case epochs
        /// Leases do not tell by which validators the bytes of one version are recognized (I8).
        case validators
        /// A part is put in place with a chunk missing (I8).
        case chunks
        /// The deletion of what a cancelled or removed task has left spares the file at its path (I13).
        case purges
        /// A group is closed when its first task ends (I7).
        case zeroTests

        /// The histories in which it does harm.
        var theme: Theme {
            switch self {
            case .syncs, .earlySyncs, .chunks, .zeroTests: .calm
            case .revocations, .holdouts, .fences, .epochs, .validators, .purges: .sleepers
            }
        }
    }
}
