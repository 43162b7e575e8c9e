import Logging
import MusterAPI
import MusterStore

/// Hands granted leases out as documents.
///
/// A lease whose terms can't be read fails alone: its task is given up as `unreadable`, which says which column is at fault, and every
/// other lease of the sync goes to its worker. An error of the whole answer would come back for ever: the worker's next sync gives all
/// of the leases back, and the next claim grants the same ones.
struct LeaseHandout: Sendable {
    let store: any LeaseStore
    let metrics: CoordinatorMetrics
    let logger: Logger

    /// The leases that can be worked on.
    func documents(of leases: [GrantedLease]) async -> [LeaseDocument] {
        var documents: [LeaseDocument] = []
        documents.reserveCapacity(leases.count)
        for lease in leases {
            do {
                documents.append(try LeaseDocument(lease))
            } catch {
                await fail(lease, error)
            }
        }
        return documents
    }

    private func fail(_ lease: GrantedLease, _ reason: any Error) async {
        metrics.add(.leasesFailed)
        logger.error("lease can't be read", metadata: [CoordinatorMetadata.error: "\(reason)"])
        do {
            try await store.report(unreadable: lease.name, of: lease.session, detail: "\(reason)")
        } catch {
            // The worker does not know of the lease: its next sync gives it back.
            logger.warning("unreadable lease not failed", metadata: [CoordinatorMetadata.error: "\(error)"])
        }
    }
}
