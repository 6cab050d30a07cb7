"""Pages of the reference as tables, from what accel-opt says of itself: options
from `--help=json`, keys of accelerate files from its JSON Schemas by release, and
the schema of plan.json."""
import concurrent.futures
import json
import re
import subprocess

# Of accelerate; the program refuses others.
RELEASES = [f"0.{n}" for n in range(11, 35)] + [f"1.{n}" for n in range(16)]


def asked(program, *words):
    done = subprocess.run([program, *words], check=True, capture_output=True,
                          text=True)
    return json.loads(done.stdout)


def cell(text):
    return " ".join(str(text).split()).replace("|", "\\|")


def table(head, rows):
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines) + "\n"


# --- options -----------------------------------------------------------------


def spelled(option):
    """As it is typed: --tune[=all], --model PATH."""
    placeholder = option["placeholder"]
    joined = option["form"] in ("joined", "optional") and placeholder
    blank = " " if placeholder and not joined else ""
    return f"`{cell(option['name'] + blank + placeholder)}`"


def options_page(program):
    """The options of each command, by section."""
    text = ["# Options\n\nOf each command, as `accel-opt COMMAND --help` prints them. "
            "Exit codes: 0 planned, and fits; 1 invalid input; 2 valid, but does not "
            "fit; 3 internal error; 4 not supported yet; 64 usage.\n"]
    for command in asked(program, "--help=json")["commands"]:
        name = command["name"]
        shown = asked(program, name, "--help=json")
        usage = f"accel-opt {name} {shown['positionals']}".strip()
        text.append(f"\n## {name}\n\n`{usage} [options]`\n\n"
                    f"{' '.join(shown['summary'].split())}\n\n")
        for section in dict.fromkeys(o["section"] for o in shown["options"]):
            if section:
                text.append(f"*{section}*\n\n")
            text.append(table(["option", "meaning"], [
                [spelled(o), cell(o["help"])] for o in shown["options"]
                if o["section"] == section]))
    return "".join(text).rstrip() + "\n"


# --- keys of accelerate files ------------------------------------------------


def sections(schema):
    """{(section, key): its schema}; the file's own keys have section ""."""
    found = {}
    for name, definition in schema["$defs"].items():
        section = {"local_machine": ""}.get(name, name)
        for key, said in definition.get("properties", {}).items():
            found[section, key] = said
    return found


def spans(present):
    """Releases as spans: "0.12 to 0.34, 1.2 on"."""
    parts, start = [], None
    for i, release in enumerate([*RELEASES, None]):
        if release in present:
            start = release if start is None else start
        elif start is not None:
            last = RELEASES[i - 1]
            parts.append(f"{start} on" if last == RELEASES[-1] else
                         start if start == last else f"{start} to {last}")
            start = None
    if parts == [f"{RELEASES[0]} on"]:
        return "all"
    return ", ".join(parts)


def values(said):
    """What the key takes, in words."""
    if "enum" in said:
        # 1 and "1" are one to a reader.
        return ", ".join(dict.fromkeys(
            f"`{v if isinstance(v, str) else json.dumps(v)}`" for v in said["enum"]))
    if "anyOf" in said:
        kinds = [values(s) for s in said["anyOf"] if s.get("type") != "null"]
        return " or ".join(dict.fromkeys(filter(None, kinds)))
    if "$ref" in said:
        return f"section [{said['$ref'].rsplit('/', 1)[1]}]" \
            f"(#{said['$ref'].rsplit('/', 1)[1]})"
    kind = said.get("type", "")
    return " or ".join(kind) if isinstance(kind, list) else kind


def keys_page(program):
    """Every key of accelerate files, with the releases that have it."""
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        schemas = dict(zip(RELEASES, pool.map(
            lambda r: asked(program, "schema", "--accelerate-version", r), RELEASES)))
    known, has, about = {}, {}, {}
    for release, schema in schemas.items():
        for place, said in sections(schema).items():
            known[place] = said  # the newest that has it
            has.setdefault(place, set()).add(release)
        about.update({n: d.get("description", "") for n, d in schema["$defs"].items()})
    text = [f"# Keys of accelerate files\n\nWhat `accelerate launch` reads from a YAML, by "
            f"the releases {RELEASES[0]} to {RELEASES[-1]} that read it; meanings are those "
            "of the newest. `accel-opt schema` prints the same as a JSON Schema, and "
            "`accel-opt lint --effective` what the keys of a file come to.\n"]
    order = [""] + [s for s in about if s not in ("local_machine", "")]
    for section in order:
        rows = [[f"`{key}`", spans(has[section, key]), values(said),
                 cell(re.sub(r" Since accelerate [\d.]+\.", "",
                             said.get("description", "")))]
                for (of, key), said in known.items() if of == section]
        if rows:
            text.append(f"\n## {section or 'The file'}\n\n"
                        f"{about.get(section or 'local_machine', '')}.\n\n" +
                        table(["key", "releases", "values", "meaning"], rows))
    return "".join(text).rstrip() + "\n"


# --- plan.json ---------------------------------------------------------------


def kind_of(said):
    if "$ref" in said:
        name = said["$ref"].rsplit("/", 1)[1]
        return f"[{name}](#{name})"
    if "const" in said:
        return f"`{json.dumps(said['const'])}`"
    if "enum" in said:
        return " or ".join(f"`{v}`" for v in said["enum"])
    for word in ("anyOf", "oneOf"):
        if word in said:
            return " or ".join(dict.fromkeys(kind_of(s) for s in said[word]))
    kind = said.get("type", "")
    if kind == "array" and isinstance(said.get("items"), dict):
        return f"list of {kind_of(said['items'])}"
    return " or ".join(kind) if isinstance(kind, list) else kind


def members(said, before=""):
    """Rows of an object's members; those of objects inside have a path."""
    required = said.get("required", [])
    for name, inner in said.get("properties", {}).items():
        path = f"{before}{name}"
        yield [f"`{path}`", kind_of(inner),
               "yes" if name in required else "", cell(inner.get("description", ""))]
        of = inner.get("items", inner) if inner.get("type") == "array" else inner
        if isinstance(of, dict) and "properties" in of:
            yield from members(of, path + ("[]." if of is not inner else "."))


def plan_page(path):
    """The members of plan.json."""
    with open(path, encoding="utf-8") as f:
        schema = json.load(f)
    text = [f"# plan.json\n\n{schema['description']} The [JSON Schema]"
            "(../../runtime/plan/plan.schema.json) says the same to programs.\n\n"]
    head = ["member", "type", "required", "meaning"]
    text.append(table(head, members(schema)))
    for name, said in schema["$defs"].items():
        text.append(f"## {name}\n\n" + (said["description"].rstrip(".") + ".\n\n"
                                        if "description" in said else ""))
        rows = list(members(said))
        text.append(table(head, rows) if rows else f"{kind_of(said)}\n\n")
    return "".join(text).rstrip() + "\n"
