// swift-tools-version: 6.1
import PackageDescription

// One switch for checking the package: `MUSTER_STRICT=1 swift build` makes warnings of our own targets errors.
let strict: [SwiftSetting] =
    Context.environment["MUSTER_STRICT"] == nil ? [] : [.unsafeFlags(["-warnings-as-errors"])]
let settings: [SwiftSetting] =
    strict + [
        .enableUpcomingFeature("ExistentialAny"),
        .enableUpcomingFeature("MemberImportVisibility"),
        .enableUpcomingFeature("InternalImportsByDefault"),
    ]

/// What thousands of whole histories run in (`Tests/MusterSimulationTests`). The same switch compiles it optimized in debug builds too.
let simulated: Set = [
    "MusterAPI", "MusterCoordinator", "MusterCore", "MusterSimulationTests", "MusterStoreModel", "MusterWorker",
]

/// The rules by which a target of our own is compiled.
func rules(of name: String) -> [SwiftSetting] {
    guard !strict.isEmpty, simulated.contains(name) else { return settings }
    return settings + [.unsafeFlags(["-O"], .when(configuration: .debug))]
}

/// A target of our own: all of them are compiled by the same rules.
func library(
    _ name: String, _ dependencies: [Target.Dependency], plugins: [Target.PluginUsage] = []
) -> Target {
    .target(name: name, dependencies: dependencies, swiftSettings: rules(of: name), plugins: plugins)
}

/// Compiles SQL and YAML files of a target into it.
let embedTexts = Target.PluginUsage.plugin(name: "EmbedTexts")

func tests(_ name: String, _ dependencies: [Target.Dependency]) -> Target {
    .testTarget(name: "\(name)Tests", dependencies: dependencies, swiftSettings: rules(of: "\(name)Tests"))
}

let argumentParser = Target.Dependency.product(name: "ArgumentParser", package: "swift-argument-parser")
let configuration = Target.Dependency.product(name: "Configuration", package: "swift-configuration")
let crypto = Target.Dependency.product(name: "Crypto", package: "swift-crypto")
let deque = Target.Dependency.product(name: "DequeModule", package: "swift-collections")
let hummingbird = Target.Dependency.product(name: "Hummingbird", package: "hummingbird")
let logging = Target.Dependency.product(name: "Logging", package: "swift-log")
let metrics = Target.Dependency.product(name: "CoreMetrics", package: "swift-metrics")
let nio = Target.Dependency.product(name: "NIOCore", package: "swift-nio")
let nioEmbedded = Target.Dependency.product(name: "NIOEmbedded", package: "swift-nio")
let nioPosix = Target.Dependency.product(name: "NIOPosix", package: "swift-nio")
let nioTLS = Target.Dependency.product(name: "NIOTLS", package: "swift-nio")
let nioSSL = Target.Dependency.product(name: "NIOSSL", package: "swift-nio-ssl")
let nioHTTP2 = Target.Dependency.product(name: "NIOHTTP2", package: "swift-nio-http2")
let nioHPACK = Target.Dependency.product(name: "NIOHPACK", package: "swift-nio-http2")
let serviceLifecycle = Target.Dependency.product(name: "ServiceLifecycle", package: "swift-service-lifecycle")
let subprocess = Target.Dependency.product(name: "Subprocess", package: "swift-subprocess")
let unixSignals = Target.Dependency.product(name: "UnixSignals", package: "swift-service-lifecycle")
let structuredFields = Target.Dependency.product(
    name: "RawStructuredFieldValues", package: "swift-http-structured-headers")
let system = Target.Dependency.product(name: "SystemPackage", package: "swift-system")
let yams = Target.Dependency.product(name: "Yams", package: "Yams")

let package = Package(
    name: "muster",
    products: [
        .executable(name: "muster", targets: ["muster"]),
        .executable(name: "muster-bench", targets: ["muster-bench"]),
        .library(name: "MusterAPI", targets: ["MusterAPI"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser", exact: "1.8.2"),
        .package(url: "https://github.com/apple/swift-collections", exact: "1.6.0"),
        .package(url: "https://github.com/apple/swift-configuration", exact: "1.4.0"),
        .package(url: "https://github.com/apple/swift-crypto", exact: "4.5.2"),
        .package(url: "https://github.com/apple/swift-http-structured-headers", exact: "1.7.0"),
        .package(url: "https://github.com/apple/swift-log", exact: "1.16.2"),
        .package(url: "https://github.com/apple/swift-metrics", exact: "2.13.0"),
        .package(url: "https://github.com/apple/swift-nio", exact: "2.101.2"),
        .package(url: "https://github.com/apple/swift-nio-http2", exact: "1.46.0"),
        .package(url: "https://github.com/apple/swift-nio-ssl", exact: "2.37.6"),
        .package(url: "https://github.com/apple/swift-system", exact: "1.8.1"),
        .package(url: "https://github.com/hummingbird-project/hummingbird", exact: "2.28.1"),
        .package(url: "https://github.com/jpsim/Yams", exact: "6.2.2"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle", exact: "2.13.0"),
        .package(url: "https://github.com/swiftlang/swift-subprocess", exact: "1.0.2"),
    ],
    targets: [
        // A plugin of the build, and the program that it starts.
        .plugin(
            name: "EmbedTexts", capability: .buildTool(), dependencies: ["embed-texts"], path: "Sources/EmbedTexts"),
        .executableTarget(name: "embed-texts", swiftSettings: settings),

        // The C libraries: module maps and typed wrappers of variadic calls, nothing else.
        .systemLibrary(name: "CCodings", providers: [.apt(["libbrotli-dev", "libisal-dev", "libzstd-dev"])]),
        .systemLibrary(name: "CLibcurl", pkgConfig: "libcurl", providers: [.apt(["libcurl4-openssl-dev"])]),
        .systemLibrary(name: "CLibisal", pkgConfig: "libisal", providers: [.apt(["libisal-dev"])]),
        .systemLibrary(name: "CLibpq", pkgConfig: "libpq", providers: [.apt(["libpq-dev"])]),

        // Threads, wake-ups and clocks of the operating system.
        .systemLibrary(name: "CEventFD"),
        library("MusterSystem", ["CEventFD", system]),

        // What the domain is made of, and what its parts say to each other.
        library("MusterCore", [structuredFields]),
        library("MusterAPI", ["MusterCore"]),

        // The outside world, one target each.
        library("MusterCurl", ["CLibcurl", "MusterSystem", system]),
        library("MusterPostgres", ["CLibpq", "MusterSystem", logging, serviceLifecycle, system]),
        library("MusterEmbeddedPostgres", ["MusterSystem", logging, subprocess, system]),

        // The coordinator never imports curl, the worker never imports the store.
        library(
            "MusterStore", ["MusterCore", "MusterPostgres", crypto, logging],
            plugins: [embedTexts]),
        // What the store is to do, in dictionaries: tests compare the database with it, and the simulation has it in the database's place.
        library("MusterStoreModel", ["MusterCore", "MusterStore"]),
        library(
            "MusterCoordinator",
            [
                "MusterCore", "MusterAPI", "MusterStore", "MusterPostgres", "MusterSystem", crypto, hummingbird,
                logging, metrics, nio, serviceLifecycle,
            ],
            plugins: [embedTexts]),
        library(
            "MusterWorker",
            [
                "MusterCore", "MusterAPI", "MusterCurl", "MusterSystem", "CCodings", "CLibisal", crypto, deque, logging,
                serviceLifecycle, system,
            ]),

        // What people start.
        library(
            "MusterCommandLine",
            [
                "MusterAPI", "MusterCoordinator", "MusterCore", "MusterCurl", "MusterEmbeddedPostgres", "MusterSystem",
                "MusterWorker", argumentParser, configuration, crypto, logging, serviceLifecycle, subprocess, system,
                unixSignals,
            ]),
        .executableTarget(name: "muster", dependencies: ["MusterCommandLine"], swiftSettings: settings),

        library(
            "MusterTestSupport",
            [
                "MusterEmbeddedPostgres", crypto, logging, nio, nioHPACK, nioHTTP2, nioPosix, nioSSL, nioTLS,
                subprocess,
                system,
            ]),

        // Measures what the others do, beside other programs; it starts real servers as the tests do.
        .executableTarget(
            name: "muster-bench",
            dependencies: [
                "MusterAPI", "MusterCore", "MusterCurl", "MusterPostgres", "MusterTestSupport", "MusterWorker",
                argumentParser, system,
            ],
            swiftSettings: settings),

        tests("MusterCore", ["MusterCore", "MusterTestSupport"]),
        tests("MusterAPI", ["MusterAPI", "MusterCore", "MusterTestSupport"]),
        tests("MusterCurl", ["MusterCurl", "MusterSystem", "MusterTestSupport"]),
        tests("MusterPostgres", ["MusterPostgres", "MusterTestSupport", "CLibpq", logging]),
        tests("MusterEmbeddedPostgres", ["MusterEmbeddedPostgres", "MusterTestSupport", logging, subprocess, system]),
        tests("MusterTestSupport", ["MusterTestSupport", nio, nioPosix, nioSSL, subprocess, system]),
        tests(
            "MusterStore",
            ["MusterStore", "MusterCore", "MusterPostgres", "MusterStoreModel", "MusterTestSupport", logging]),
        tests(
            "MusterCoordinator",
            [
                "MusterCoordinator", "MusterAPI", "MusterCommandLine", "MusterCore", "MusterStore", "MusterPostgres",
                "MusterSystem", "MusterTestSupport", "MusterWorker", hummingbird, logging, metrics, nio, nioEmbedded,
                serviceLifecycle, system, yams,
            ]),
        tests(
            "MusterWorker",
            [
                "MusterWorker", "MusterAPI", "MusterCore", "MusterCurl", "MusterSystem", "MusterTestSupport", crypto,
                logging, system,
            ]),
        tests(
            "MusterCommandLine",
            [
                "MusterCommandLine", "MusterAPI", "MusterCoordinator", "MusterCore", "MusterSystem",
                "MusterTestSupport", argumentParser, subprocess, system,
            ]),
        tests(
            "MusterSimulation",
            [
                "MusterAPI", "MusterCoordinator", "MusterCore", "MusterCurl", "MusterPostgres", "MusterStore",
                "MusterStoreModel", "MusterSystem", "MusterTestSupport", "MusterWorker", logging,
            ]),
        tests("MusterBench", ["muster-bench", "MusterTestSupport", system]),
        tests(
            "MusterEndToEnd",
            ["MusterAPI", "MusterCore", "MusterStore", "MusterTestSupport", "MusterWorker", logging, system]),
    ],
    swiftLanguageModes: [.v6]
)
