"""validate.py SCHEMA PLAN: checks a plan against the schema."""
import json
import sys

import jsonschema

with open(sys.argv[1]) as file:
    schema = json.load(file)
with open(sys.argv[2]) as file:
    plan = json.load(file)
jsonschema.Draft202012Validator.check_schema(schema)
errors = list(jsonschema.Draft202012Validator(schema).iter_errors(plan))
for error in errors[:5]:
    print("/".join(str(part) for part in error.absolute_path), error.message[:200])
print("invalid" if errors else "valid")
