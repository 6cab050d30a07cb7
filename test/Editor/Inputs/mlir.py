"""A module of our dialects in an editor."""
import sys

from client import Client

client = Client("accel-opt", "lsp", "--mlir")
client.result("initialize", {"capabilities": {}})
uri = "file:///nowhere/a.mlir"
text = open(sys.argv[1]).read()
client.notify("textDocument/didOpen", {"textDocument": {"uri": uri, "languageId": "mlir", "version": 1, "text": text}})
print("findings:", len(client.diagnostics()))
text = "func.func @f() {\n  aten.nothing\n}\n"
client.notify("textDocument/didOpen", {"textDocument": {"uri": uri, "languageId": "mlir", "version": 2, "text": text}})
print("wrong:", client.diagnostics()[0]["message"])
print("exit", client.end())
