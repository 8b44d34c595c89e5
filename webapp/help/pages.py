"""Finds the file of a page of the help by its address.

The set is closed: it is made once, from the folders named here, and an address is looked up in it. So no address leads to another file. The
files belong to the program, in a checkout, a bundle and an image alike. They hold nothing of any workspace.
"""

import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from webapp.environment import BASE_DIR

DOCS = "docs"
LIST = f"{DOCS}/README.md"
BESIDE = "project"
"""The first part of the addresses of files outside `docs/`."""
OUTSIDE = ("*.md", "LICENSE", ".env.example", "demo/README.md", "docker/README.md", "deploy/*")
"""Files outside `docs/` to which pages of the documentation link."""
KINDS = {".md": "text/markdown", ".png": "image/png", ".json": "application/json"}
_TITLE = re.compile(r"^# (.+)$", re.MULTILINE)
_ENTRY = re.compile(r"^- \[[^\]]*\]\(([^)\s]+)\): (.*(?:\n  .*)*)", re.MULTILINE)


@dataclass(frozen=True)
class HelpFile:
    """A file of the help. `name` is its path in the repository, `slug` the end of its address."""

    name: str
    slug: str
    path: Path

    @property
    def is_page(self) -> bool:
        return self.path.suffix == ".md"

    @property
    def kind(self) -> str:
        return KINDS.get(self.path.suffix, "text/plain")

    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")


@dataclass(frozen=True)
class HelpEntry:
    """A page in the list: what it is about, in Markdown."""

    file: HelpFile
    about: str

    @property
    def title(self) -> str:
        return title(self.file)


@dataclass(frozen=True)
class HelpSection:
    title: str
    entries: tuple[HelpEntry, ...]


@cache
def files(root: Path = BASE_DIR) -> Mapping[str, HelpFile]:
    """{slug: file}; empty if the installation has no `docs/`."""
    found = {each.slug: each for each in _files(root)}
    return found if any(each.name == LIST for each in found.values()) else {}


def _files(root: Path) -> Iterator[HelpFile]:
    for path in sorted((root / DOCS).rglob("*")):
        if path.suffix in KINDS and path.is_file():
            inside = path.relative_to(root / DOCS).as_posix()
            yield HelpFile(f"{DOCS}/{inside}", inside.removesuffix(".md"), path)
    for pattern in OUTSIDE:
        for path in sorted(root.glob(pattern)):
            if path.is_file():
                name = path.relative_to(root).as_posix()
                yield HelpFile(name, f"{BESIDE}/{name.removesuffix('.md')}", path)


@cache
def by_name() -> Mapping[str, HelpFile]:
    """{path in the repository: file}."""
    return {each.name: each for each in files().values()}


def named(page: HelpFile, path: str) -> HelpFile | None:
    """The file that a relative path in `page` names; None if the help has none. A folder stands for its README, a folder without one for its
    first file."""
    name = posixpath.normpath(posixpath.join(posixpath.dirname(page.name), path))
    file = by_name().get(name) or by_name().get(f"{name}/README.md")
    return file or next((each for other, each in sorted(by_name().items()) if other.startswith(f"{name}/")), None)


def linked(page: HelpFile, href: str) -> str | None:
    """The address to which a relative link of `page` leads; None if it leads to no file of the help."""
    path, mark, anchor = href.partition("#")
    if not path:
        return href
    file = named(page, path)
    return f"{address(file)}{mark}{anchor}" if file else None


def address(file: HelpFile) -> str:
    return "/help" if file.name == LIST else f"/help/{file.slug}"


@cache
def title(file: HelpFile) -> str:
    """The first heading of a page, without its marks; the name of any other file."""
    found = _TITLE.search(file.text()) if file.is_page else None
    return re.sub(r"[`*]", "", found[1]) if found else file.name


@cache
def sections() -> tuple[HelpSection, ...]:
    """The list of docs/README.md: its headings, and the pages below each."""
    readme = by_name().get(LIST)
    if readme is None:
        return ()
    found = []
    for part in re.split(r"^## ", readme.text(), flags=re.MULTILINE)[1:]:
        heading, _, body = part.partition("\n")
        entries = []
        for href, about in _ENTRY.findall(body):
            file = by_name().get(posixpath.normpath(posixpath.join(DOCS, href)))
            if file is not None:
                entries.append(HelpEntry(file, " ".join(about.split())))
        found.append(HelpSection(heading.strip(), tuple(entries)))
    return tuple(found)
