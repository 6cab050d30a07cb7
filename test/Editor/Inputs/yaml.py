"""One session of an editor with an accelerate YAML."""
import pathlib
import sys

from client import Client

folder, model = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2]
text = """distributed_type: FSDP
num_processes: 8
mixed_precision: bf16
fsdp_config:
  fsdp_version: 2
  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP
  fsdp_reshard_after_fowrard: true
"""
uri = (folder / "äccelerate.yaml").as_uri()
document = {"uri": uri}
client = Client("accel-opt", "lsp", "--model", model)


def at(line, character):
    return {"textDocument": document, "position": {"line": line, "character": character}}


def span(line, last=None):
    return {"textDocument": document, "context": {"diagnostics": []},
            "range": {"start": {"line": line, "character": 0}, "end": {"line": line if last is None else last, "character": 0}}}


def change(new, version):
    client.notify("textDocument/didChange", {"textDocument": {**document, "version": version}, "contentChanges": [{"text": new}]})


def apply(edits, old):
    lines = old.splitlines(keepends=True) + [""]
    for edit in sorted(edits, key=lambda e: (e["range"]["start"]["line"], e["range"]["start"]["character"]), reverse=True):
        begin, end = ((edit["range"][k]["line"], edit["range"][k]["character"]) for k in ("start", "end"))
        offset = [sum(map(len, lines[:line])) + character for line, character in (begin, end)]
        old = old[:offset[0]] + edit["newText"] + old[offset[1]:]
    return old


capabilities = client.result("initialize", {"capabilities": {}})["capabilities"]
for name in ("hoverProvider", "completionProvider", "codeActionProvider", "inlayHintProvider"):
    assert capabilities[name], name
client.notify("initialized", {})
client.notify("textDocument/didOpen", {"textDocument": {**document, "languageId": "yaml", "version": 1, "text": text}})

found = client.diagnostics()
typo = [d for d in found if d["range"]["start"]["line"] == 6]
assert typo and typo[0]["severity"] == 2, found
print("diagnostic:", typo[0]["message"].splitlines()[0])
start, end = typo[0]["range"]["start"]["character"], typo[0]["range"]["end"]["character"]
assert text.splitlines()[6][start:end] == "fsdp_reshard_after_fowrard", (start, end)

actions = client.result("textDocument/codeAction", span(6))
fix = next(a for a in actions if a["kind"] == "quickfix")
print("action:", fix["title"])
fixed = apply(fix["edit"]["changes"][uri], text)
assert fixed == text.replace("fowrard", "forward"), fixed
all_at_once = next(a for a in actions if a["kind"] == "source.fixAll")
assert "fsdp_reshard_after_forward" in apply(all_at_once["edit"]["changes"][uri], text)
assert not [a for a in client.result("textDocument/codeAction", span(0)) if a["kind"] == "quickfix"]

# A text that plans, in an editor that says the target.
change(fixed, 2)
assert not [d for d in client.diagnostics() if d["severity"] == 1]
client.notify("workspace/didChangeConfiguration", {"settings": {"accelOpt": {"model": model, "target": "h100-sxm-80gb"}}})
client.diagnostics()
hints = client.result("textDocument/inlayHint", span(0, 20))
print("hint:", hints[0]["label"], "at line", hints[0]["position"]["line"], "column", hints[0]["position"]["character"])

# The first line goes before the settings.
change(f"# accel-opt: model={model} target=a100-40gb\n" + fixed, 3)
client.diagnostics()
other = client.result("textDocument/inlayHint", span(0, 20))
assert other[0]["position"]["line"] == 1 and other[0]["label"] != hints[0]["label"], other
change(fixed, 4)
client.diagnostics()

print("hover:", client.result("textDocument/hover", at(6, 5))["contents"]["value"].replace("\n\n", " | "))
assert client.result("textDocument/hover", at(40, 0)) is None
keys = [i["label"] for i in client.result("textDocument/completion", at(6, 2))["items"]]
assert "fsdp_offload_params" in keys and "num_processes" not in keys, keys
change(fixed + "mixed_precision: \n  ", 5)
client.diagnostics()
values = [i["label"] for i in client.result("textDocument/completion", at(7, 17))["items"]]
print("values:", *values)
change("distributed_type: FSDP\n\n", 6)
client.diagnostics()
items = client.result("textDocument/completion", at(1, 0))["items"]
print("insert:", *(i["insertText"] for i in items if i["label"] in ("num_processes", "fsdp_config")))

client.notify("textDocument/didClose", {"textDocument": document})
assert client.diagnostics() == []
assert client.result("textDocument/hover", at(0, 0)) is None
print("exit", client.end())
