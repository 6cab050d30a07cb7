"""Holds docs/schemas/schemastore.json against what SchemaStore asks of an entry
and against the schemas beside it: schemastore.py FOLDER."""
import json
import os
import sys

folder, = sys.argv[1:]
with open(os.path.join(folder, "schemastore.json"), encoding="utf-8") as f:
    entries = json.load(f)
names = []
for entry in entries:
    assert set(entry) == {"name", "description", "fileMatch", "url"}, entry
    assert not entry["name"].lower().endswith(("schema", ".json"))
    path = os.path.join(folder, os.path.basename(entry["url"]))
    with open(path, encoding="utf-8") as f:
        assert json.load(f)["$id"] == entry["url"], f"{path} has another $id"
    for pattern in entry["fileMatch"]:
        base = os.path.basename(pattern)
        # A name that other programs' files have would mark all of theirs.
        assert "accelerate" in pattern and not base.startswith("*"), pattern
        assert base.endswith((".yaml", ".yml")), pattern
        names.append(pattern)
assert len(set(names)) == len(names)
print(f"{len(entries)} entry, {len(names)} names")
