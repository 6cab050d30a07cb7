"""Reads a report of `lint --format` from stdin and says what is in it.

  check-format.py sarif|gitlab|junit

For SARIF: what section 3 of the 2.1.0 specification asks of each object that
we write, as a JSON Schema. Every fix is applied to its file in memory.
"""
import json
import sys
import xml.etree.ElementTree

import jsonschema

TEXT = {"type": "object", "required": ["text"],
        "properties": {"text": {"type": "string", "minLength": 1}}}
LOCATION = {"type": "object", "required": ["uri"], "additionalProperties": False,
            "properties": {"uri": {"type": "string", "format": "uri-reference",
                                   "pattern": "^[^ \\\\]+$"}}}
REGION = {"type": "object", "required": ["startLine"],
          "additionalProperties": False,
          "properties": {k: {"type": "integer", "minimum": 1} for k in
                         ("startLine", "startColumn", "endLine", "endColumn")}}
FIX = {
    "type": "object", "required": ["artifactChanges"],
    "properties": {
        "description": TEXT,
        "artifactChanges": {"type": "array", "minItems": 1, "items": {
            "type": "object", "required": ["artifactLocation", "replacements"],
            "properties": {
                "artifactLocation": LOCATION,
                "replacements": {"type": "array", "minItems": 1, "items": {
                    "type": "object", "required": ["deletedRegion"],
                    "properties": {
                        "deletedRegion": REGION,
                        "insertedContent": {"type": "object", "properties": {
                            "text": {"type": "string"}}}},
                    "additionalProperties": False}}},
            "additionalProperties": False}}},
    "additionalProperties": False}
RESULT = {
    "type": "object", "required": ["message", "ruleId", "ruleIndex", "level"],
    "properties": {
        "message": TEXT, "ruleId": {"type": "string"},
        "ruleIndex": {"type": "integer", "minimum": 0},
        "level": {"enum": ["none", "note", "warning", "error"]},
        "locations": {"type": "array", "items": {
            "type": "object", "required": ["physicalLocation"],
            "properties": {
                "physicalLocation": {
                    "type": "object", "required": ["artifactLocation"],
                    "properties": {"artifactLocation": LOCATION,
                                   "region": REGION},
                    "additionalProperties": False},
                "logicalLocations": {"type": "array"}},
            "additionalProperties": False}},
        "fixes": {"type": "array", "items": FIX, "minItems": 1}},
    "additionalProperties": False}
SARIF = {
    "type": "object", "required": ["version", "runs"],
    "properties": {
        "$schema": {"type": "string", "format": "uri"},
        "version": {"const": "2.1.0"},
        "runs": {"type": "array", "minItems": 1, "maxItems": 1, "items": {
            "type": "object", "required": ["tool", "results"],
            "properties": {
                "tool": {"type": "object", "required": ["driver"],
                         "properties": {"driver": {
                             "type": "object",
                             "required": ["name", "version", "rules"],
                             "properties": {"rules": {
                                 "type": "array", "uniqueItems": True,
                                 "items": {"type": "object",
                                           "required": ["id", "helpUri"]}}}}}},
                "columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
                "results": {"type": "array", "items": RESULT}},
            "additionalProperties": False}}},
    "additionalProperties": False}


def offset(text, line, column):
    at = 0
    for _ in range(line - 1):
        at = text.index("\n", at) + 1
    return at + column - 1


def applied(fix):
    """The text of the file after the fix."""
    change = fix["artifactChanges"][0]
    with open(change["artifactLocation"]["uri"].removeprefix("file://"),
              encoding="utf-8") as f:
        text = f.read()
    for part in reversed(change["replacements"]):
        region = part["deletedRegion"]
        start = offset(text, region["startLine"], region["startColumn"])
        end = offset(text, region.get("endLine", region["startLine"]),
                     region["endColumn"])
        text = text[:start] + part["insertedContent"]["text"] + text[end:]
    return text


def sarif(text):
    log = json.loads(text)
    jsonschema.validate(log, SARIF)
    run = log["runs"][0]
    rules = run["tool"]["driver"]["rules"]
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"], result
        print(result["level"], result["ruleId"])
        for fix in result.get("fixes", []):
            before = {line for line in open(
                fix["artifactChanges"][0]["artifactLocation"]["uri"]
                .removeprefix("file://"), encoding="utf-8")}
            print("".join("+" + line for line in applied(fix).splitlines(True)
                          if line not in before), end="")


def gitlab(text):
    seen = set()
    for entry in json.loads(text):
        assert entry["severity"] in ("info", "minor", "major", "critical",
                                     "blocker"), entry
        assert entry["location"]["lines"]["begin"] >= 1, entry
        assert entry["description"] and entry["check_name"], entry
        assert entry["fingerprint"] not in seen, entry
        seen.add(entry["fingerprint"])
        print(entry["severity"], entry["check_name"])


def junit(text):
    root = xml.etree.ElementTree.fromstring(text)
    assert root.tag == "testsuites", root.tag
    cases = root.findall("testsuite/testcase")
    failures = root.findall("testsuite/testcase/failure")
    assert int(root.get("tests")) == len(cases)
    assert int(root.get("failures")) == len(failures)
    assert sum(int(s.get("tests")) for s in root) == len(cases)
    for case in cases:
        state = "failed" if case.find("failure") is not None else "passed"
        print(state, case.get("name"))


{"sarif": sarif, "gitlab": gitlab, "junit": junit}[sys.argv[1]](sys.stdin.read())
