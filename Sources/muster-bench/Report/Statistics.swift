/// The median and the spread of a few measurements.
struct Statistics: Sendable, Hashable {
    /// The measurements, in ascending order.
    let sorted: [Double]

    /// The statistics of any number of measurements, in any order.
    init(_ values: [Double]) {
        sorted = values.sorted()
    }

    /// The middle measurement, or the mean of the two in the middle; `nil` without measurements.
    var median: Double? {
        guard !sorted.isEmpty else { return nil }
        let middle = sorted.count / 2
        return sorted.count % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
    }

    /// The smallest measurement.
    var minimum: Double? { sorted.first }
    /// The largest measurement.
    var maximum: Double? { sorted.last }

    /// The smallest measurement that is not exceeded by at least the share `part`, from 0 to 1, of all measurements (nearest rank).
    func percentile(_ part: Double) -> Double? {
        guard !sorted.isEmpty else { return nil }
        let rank = Int((part * Double(sorted.count)).rounded(.up))
        return sorted[min(max(rank, 1), sorted.count) - 1]
    }
}

/// Numbers in tables and plots: three significant digits, and commas between thousands.
enum Figure {
    /// The text of a number.
    static func text(_ value: Double) -> String {
        guard value.isFinite else { return "–" }
        if value < 0 { return "-" + text(-value) }
        let decimals = value >= 100 || value == 0 ? 0 : value >= 10 ? 1 : value >= 1 ? 2 : 3
        return fixed(value, decimals: decimals)
    }

    private static func fixed(_ value: Double, decimals: Int) -> String {
        let unit = (0..<decimals).reduce(Int64(1)) { power, _ in power * 10 }
        let scaled = (value * Double(unit)).rounded()
        guard scaled < 9e18 else { return "\(value)" }
        let number = Int64(scaled)
        var text = grouped(number / unit)
        if decimals > 0 {
            let fraction = String(number % unit)
            text += "." + String(repeating: "0", count: decimals - fraction.count) + fraction
        }
        return text
    }

    /// The text of a count.
    static func count(_ number: Int) -> String { grouped(Int64(number)) }

    private static func grouped(_ number: Int64) -> String {
        let digits = Array(String(number))
        var text = ""
        for (index, digit) in digits.enumerated() {
            if index > 0, (digits.count - index) % 3 == 0 { text += "," }
            text.append(digit)
        }
        return text
    }
}
