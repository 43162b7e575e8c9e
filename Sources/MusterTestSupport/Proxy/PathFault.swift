/// What a path does to the connections that lead through it (F6, F7, F8). No byte is changed, doubled or moved: TCP prevents that.
public enum PathFault: Sendable, Hashable {
    /// One of the two directions of a connection.
    public enum Direction: Sendable, Hashable, CaseIterable {
        /// From the side that has opened the connection: requests.
        case toServer
        /// To the side that has opened the connection: answers.
        case toClient
    }

    /// Everything comes later by this time, in each direction.
    case latency(Duration)
    /// Each connection has at most this rate in each direction.
    case bandwidth(bytesPerSecond: Int)
    /// Nothing is passed on, the end of a connection neither. What was held back goes on when the fault ends.
    case hang
    /// Nothing is passed on in this direction. As after a partition, what was held back goes on when the fault ends.
    case partition(Direction)
    /// Every open connection is reset once, when the fault begins; new ones work.
    case reset
    /// Bytes are passed on in pieces of this size, a millisecond apart.
    case slices(bytes: Int)
    /// Each connection ends after so many bytes in this direction, counted from the beginning of the fault. With 0 bytes of answers a server does
    /// what it is asked to do, and the client does not hear of it.
    case cut(afterBytes: Int, Direction)

    /// Whether bytes in this direction are held back.
    func holds(_ direction: Direction) -> Bool {
        switch self {
        case .hang: true
        case .partition(let partitioned): partitioned == direction
        case .latency, .bandwidth, .reset, .slices, .cut: false
        }
    }
}
