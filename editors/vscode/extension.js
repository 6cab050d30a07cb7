// Starts `accel-opt lsp` for configurations and `accel-opt lsp --mlir` for modules.
const vscode = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

const clients = [];

function start(id, name, args, documentSelector, options) {
  const command = vscode.workspace.getConfiguration("accelOpt").get("path");
  const client = new LanguageClient(id, name, { command, args }, { documentSelector, ...options });
  clients.push(client);
  return client.start().catch((error) =>
    vscode.window.showErrorMessage(`${name} did not start (${error.message}): install it with 'pip install accel-opt', or set accelOpt.path.`));
}

async function activate() {
  const settings = vscode.workspace.getConfiguration("accelOpt");
  const { model, target } = settings;
  const files = settings.get("files").map((pattern) => ({ scheme: "file", language: "yaml", pattern }));
  await Promise.all([
    start("accelOpt", "accel-opt", ["lsp"], files, {
      initializationOptions: { model, target },
      synchronize: { configurationSection: "accelOpt" },
    }),
    start("accelOptMlir", "accel-opt (MLIR)", ["lsp", "--mlir"], [{ scheme: "file", language: "mlir" }], {}),
  ]);
}

function deactivate() {
  return Promise.all(clients.map((client) => client.stop()));
}

module.exports = { activate, deactivate };
