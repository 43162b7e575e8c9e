import PackagePlugin

/// Compiles the SQL and YAML files of a target into it, as `EmbeddedTexts.files`.
@main
struct EmbedTextsPlugin: BuildToolPlugin {
    func createBuildCommands(context: PluginContext, target: any Target) throws -> [Command] {
        guard let target = target as? any SourceModuleTarget else { return [] }
        let texts = target.sourceFiles.map(\.url).filter { ["sql", "yaml"].contains($0.pathExtension) }
        let output = context.pluginWorkDirectoryURL.appending(path: "EmbeddedTexts.swift")
        return [
            .buildCommand(
                displayName: "Embedding the texts of \(target.name)",
                executable: try context.tool(named: "embed-texts").url,
                arguments: [output.path, target.directoryURL.path] + texts.map(\.path).sorted(),
                inputFiles: texts, outputFiles: [output])
        ]
    }
}
