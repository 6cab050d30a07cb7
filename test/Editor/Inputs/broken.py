"""What is no message, or a wrong one, leaves the server answering."""

from client import Client

client = Client("accel-opt", "lsp")
client.result("initialize", {"capabilities": {}})


def framed(body, header=b"Content-Length: %d\r\n"):
    return header % len(body) + b"\r\n" + body


deep = b'{"jsonrpc": "2.0", "method": "x", "params": ' + b"[" * 200000 + b"]" * 200000 + b"}"
bodies = [b"{", b"null", b"[]", b"{}", b'"text"', b"\xff\xfe\x00", b"x", deep,
          b'{"jsonrpc": "1.0", "method": "initialize", "id": 1}', b'{"jsonrpc": "2.0"}',
          b'{"jsonrpc": "2.0", "method": 3, "id": 4.5}', b'{"jsonrpc": "2.0", "id": 77, "result": 1}',
          b'{"jsonrpc": "2.0", "id": 78, "error": "no object"}']
for body in bodies:
    client.raw(framed(body))
for data in (b"Content-Length: -1\r\n\r\n", b"Content-Length: 99999999999999999999999\r\n\r\n", b"Content-Length:\r\n\r\n",
             b"\r\n\r\n", b"no header\r\n\r\n", b"X" * 100000 + b"\r\n\r\n"):
    client.raw(data)

uri = "file:///nowhere/a.yaml"
wrong = [None, [], {}, 3, "text", {"textDocument": {}}, {"textDocument": {"uri": 3}, "position": {}},
         {"textDocument": {"uri": "http://x/a.yaml"}, "position": {"line": 0, "character": 0}},
         {"textDocument": {"uri": uri}, "position": {"line": "a"}}]
methods = ("hover", "completion", "codeAction", "inlayHint", "didOpen", "didChange", "didClose", "noSuchMethod")
errors = 0
for method in methods:
    for params in wrong:
        if method.startswith("did"):
            client.notify("textDocument/" + method, params)
        else:
            errors += "error" in client.call("textDocument/" + method, params)
print("refused", errors, "of", 5 * len(wrong))

texts = ["", "\n", ":", "\t", "- [", "a: &a [*a]\n", "\x00", "\ufeff", "key", "{" * 1000, "? ", "'", "𝄞: 𝄞\n", "fsdp_config:\n" + " " * 3000 + "x: 1"]
for version, text in enumerate(texts):
    client.notify("textDocument/didOpen", {"textDocument": {"uri": uri, "languageId": "yaml", "version": version, "text": text}})
    client.diagnostics()
    for line, character in ((0, 0), (0, 5), (1, 1), (10**9, 10**9), (-1, -1)):
        place = {"textDocument": {"uri": uri}, "position": {"line": line, "character": character}}
        client.call("textDocument/hover", place)
        client.call("textDocument/completion", place)
    span = {"start": {"line": -5, "character": 0}, "end": {"line": 10**9, "character": 0}}
    client.call("textDocument/codeAction", {"textDocument": {"uri": uri}, "range": span, "context": {"diagnostics": []}})
    client.call("textDocument/inlayHint", {"textDocument": {"uri": uri}, "range": span})
print("exit", client.end())

# The other end goes away in the middle of a message.
client = Client("accel-opt", "lsp")
client.raw(b"Content-Length: 100\r\n\r\n{")
client.process.stdin.close()
print("cut off:", client.process.wait(timeout=60))
