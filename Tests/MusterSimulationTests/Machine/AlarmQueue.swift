/// What is to happen at a moment of the clock: a heap, in which alarms of one moment keep their order.
struct AlarmQueue {
    private struct Alarm {
        let moment: Int64
        let number: Int
        let ring: @Sendable () -> Void

        func comes(before other: Alarm) -> Bool { (moment, number) < (other.moment, other.number) }
    }

    private var heap: [Alarm] = []
    private var count = 0

    /// The moment of the next alarm.
    var first: Int64? { heap.first?.moment }

    /// Adds an alarm, and returns its number.
    mutating func add(_ moment: Int64, _ ring: @escaping @Sendable () -> Void) -> Int {
        count += 1
        heap.append(Alarm(moment: moment, number: count, ring: ring))
        var index = heap.count - 1
        while index > 0, heap[index].comes(before: heap[(index - 1) / 2]) {
            heap.swapAt(index, (index - 1) / 2)
            index = (index - 1) / 2
        }
        return count
    }

    /// Takes all alarms up to a moment, in order.
    mutating func take(until moment: Int64) -> [@Sendable () -> Void] {
        var rings: [@Sendable () -> Void] = []
        while let alarm = heap.first, alarm.moment <= moment {
            rings.append(alarm.ring)
            removeFirst()
        }
        return rings
    }

    private mutating func removeFirst() {
        heap.swapAt(0, heap.count - 1)
        heap.removeLast()
        var index = 0
        while true {
            var least = 2 * index + 1
            guard least < heap.count else { return }
            if least + 1 < heap.count, heap[least + 1].comes(before: heap[least]) { least += 1 }
            guard heap[least].comes(before: heap[index]) else { return }
            heap.swapAt(index, least)
            index = least
        }
    }
}
