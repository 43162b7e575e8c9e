import FoundationEssentials
import MusterCore

/// One text under each coding, made by independent programs: `gzip -9n`, zlib and a bare deflate of level 9, brotli, `zstd -19 --check`.
enum CodedText {
    static let text = Array((1_000..<1_040).map { "line \($0) of the file, as it is\n" }.joined().utf8)

    /// The text under each coding. `deflate` stands twice: with a zlib header, and bare.
    static let all: [(coding: ContentCoding, bytes: [UInt8])] = [
        (.gzip, bytes(gzip)), (.deflate, bytes(zlib)), (.deflate, bytes(bare)), (.brotli, bytes(brotli)),
        (.zstandard, bytes(zstandard)),
    ]

    /// 256 KiB of zeros under each coding: as many bytes as are decoded at once.
    static let zeros: [(coding: ContentCoding, bytes: [UInt8])] = [
        (
            .gzip,
            bytes(
                "H4sIAAAAAAACA+3BMQEAAADCoPVP7W0HoAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
                    + "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
                    + "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
                    + "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
                    + "AAAAAAAAAAAAAAAAAAAA3gAi6g7iAAAEAA==")
        ),
        (
            .deflate,
            bytes(
                "eNrtwTEBAAAAwqD1T+1tB6AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
                    + "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
                    + "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
                    + "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
                    + "AAAAAAAAAN4AADwAAQ==")
        ),
        (
            .deflate,
            bytes(
                "7cExAQAAAMKg9U/tbQegAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
                    + "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
                    + "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
                    + "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
                    + "AAAAAADeAA==")
        ),
        (
            .brotli,
            bytes(
                "W///g38CIB4LBHLvBwA=")
        ),
        (
            .zstandard,
            bytes(
                "KLUv/QRoTAAACAABAPz/ORACAwAQAEAnD6Y=")
        ),
    ]

    static func bytes(_ base64: String) -> [UInt8] { Array(Data(base64Encoded: base64) ?? Data()) }

    static let gzip =
        "H4sIAAAAAAACA4XQsQ3CQBREwZwqfgEEt7tgoByCszjphAO7f5GQwosnmznevdRaq22t49VrHbOf67nXOGrsp/l1gRs84BfwK/gCfgO/gz/+"
        + "u+BP8Cf4E/wJ/gR/gj/Bn+BP8Gf4M/wZ/gx/hj/Dn+HP8Gf4M/wF/gJ/gb/AX+Av8Bf4C/wF/vLr7wMYM4XYAAUAAA=="
    static let zlib =
        "eNqF0LENwkAURMGcKn4BBLe7YKAcgrM46YQDu3+RkMKLJ5s53r3UWqttrePVax2zn+u51zhq7Kf5dYEbPOAX8Cv4An4Dv4M//rvgT/An+BP8"
        + "Cf4Ef4I/wZ/gT/Bn+DP8Gf4Mf4Y/w5/hz/Bn+DP8Bf4Cf4G/wF/gL/AX+Av8Bf7y6+8D1tqHUA=="
    static let bare =
        "hdCxDcJAFETBnCp+AQS3u2CgHIKzOOmEA7t/kZDCiyebOd691Fqrba3j1Wsds5/rudc4auyn+XWBGzzgF/Ar+AJ+A7+DP/674E/wJ/gT/An+"
        + "BH+CP8Gf4E/wZ/gz/Bn+DH+GP8Of4c/wZ/gz/AX+An+Bv8Bf4C/wF/gL/AX+8uvvAw=="
    static let brotli =
        "G/8EoJwJdqw7cI2YKYdXYWiZNkenB8NY7SJBFMoQBwcgHx6lxDIoNavXwOYi9xcmvphigVAklkhl5eAbjEAoEkuksnLwDUcgFIklUlk5+EYj"
        + "EIrEEqmsXPI="
    static let zstandard =
        "KLUv/QRozQIAooQOEKB7Ri/3BAA/KZLsom/vKh5DvDevJu4Q782riTrEe/NqYg7x3ryagKFr6Bi5UBIyV047sw4R84pCKSioEaC7/2fgNwMR"
        + "3BD8N4Q1fhhcgDmIk4cBJDWSlNvu"
}
