"""Hooks of MkDocs: the pages of the repository become the site as they are, those at its top level, too."""

import re
from pathlib import Path

from mkdocs.structure.files import File

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
TOP = {"README.md": "index.md", "ARCHITECTURE.md": "architecture.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
SOURCE = "https://" + re.search(r"(?m)^module (\S+)", (ROOT / "go.mod").read_text())[1] + "/tree/main/"


def on_files(files, config):
    for name, page in TOP.items():
        files.append(File.generated(config, page, content=(ROOT / name).read_text()))
    files.append(File.generated(config, "site.css", content=(HERE / "site.css").read_text()))
    return files


def on_page_markdown(markdown, page, config, files):
    path = Path(page.file.src_uri)
    folder = ROOT if path.name in TOP.values() else ROOT / "docs" / path.parent

    def link(match):
        text, target, anchor = match.groups("")
        file = (folder / target).resolve()
        if "://" in target or not target or not file.exists():
            return match[0]  # of another site, of this page, or missing: MkDocs says so
        name = file.relative_to(ROOT)
        if file.suffix == ".md" and text.endswith(file.name):
            text = re.search(r"(?m)^# (.*)", file.read_text())[1]
        if str(name) in TOP:
            name = Path("docs", TOP[str(name)])
        if name.parts[0] != "docs":
            return f"[{text}]({SOURCE}{name})"
        return f"[{text}]({'../' * (len(path.parents) - 1)}{name.relative_to('docs')}{anchor})"

    # A comment before a table would hide the table from Python's Markdown.
    return re.sub(r"\[([^]]*)\]\(([^)#\s]*)(#[^)\s]*)?\)", link, re.sub(r"(?s)<!--.*?-->", "", markdown))
