"""What MkDocs does beside building docs/: README.md, CHANGELOG.md and SKILL.md
are pages, the decisions stand in the navigation, and links to files that are no
page go to the repository."""
import glob
import os
import posixpath
import re

from mkdocs.structure.files import File

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# Pages of the site whose text lies outside docs/.
OUTSIDE = {"index.md": "README.md", "changes.md": "CHANGELOG.md",
           "agents.md": "SKILL.md"}
LINK = re.compile(r"(?<=\]\()([^)\s#]+)(#[^)\s]*)?(?=\))")


def on_config(config):
    decisions = sorted(glob.glob(os.path.join(config.docs_dir, "decisions", "*.md")))
    for section in config.nav:
        for pages in section.values():
            if "decisions/" in pages:
                pages.remove("decisions/")
                pages.append({"Decisions": ["decisions/" + os.path.basename(path)
                                            for path in decisions]})
    return config


def on_files(files, config):
    for name, source in OUTSIDE.items():
        with open(os.path.join(ROOT, source), encoding="utf-8") as f:
            files.append(File.generated(config, name, content=f.read()))
    return files


def on_page_markdown(markdown, page, config, files):
    source = OUTSIDE.get(page.file.src_uri) or "docs/" + page.file.src_uri
    names = {path: name for name, path in OUTSIDE.items()}

    def rewritten(link):
        target, anchor = link.group(1), link.group(2) or ""
        if re.match(r"[a-z]+:", target):
            return link.group(0)
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
        name = names.get(path) or path.removeprefix("docs/")
        if files.get_file_from_path(name):
            here = posixpath.dirname(page.file.src_uri) or "."
            return posixpath.relpath(name, here) + anchor
        kind = "tree" if os.path.isdir(os.path.join(ROOT, path)) else "blob"
        return f"{config.extra['repository']}/{kind}/main/{path}{anchor}"

    return LINK.sub(rewritten, markdown)
