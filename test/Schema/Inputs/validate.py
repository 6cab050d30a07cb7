"""What jsonschema says about a YAML text or file: validate.py SCHEMA TEXT"""
import json
import os
import sys

import jsonschema
import yaml

with open(sys.argv[1], encoding="utf-8") as f:
    schema = json.load(f)
text = sys.argv[2]
if os.path.exists(text):
    with open(text, encoding="utf-8") as f:
        text = f.read()
errors = jsonschema.Draft202012Validator(schema).iter_errors(
    yaml.safe_load(text))
error = jsonschema.exceptions.best_match(errors)
print(f"{error.json_path}: {error.message}" if error else "valid")
