"""A page of the help as HTML.

The texts are our own, and yet go through the allow-list of all Markdown. In contrast to a text of a person, lines that were only wrapped are
joined, headings have anchors, pictures of the help are shown, and links between files become links between pages.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import nh3
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.token import Token

from webapp.core.text.markdown import ATTRIBUTES, TAGS

from . import pages
from .languages import grouped
from .pages import HelpFile

_WITHIN = re.compile(r"[a-z][a-z0-9+.-]*:|//", re.IGNORECASE)
_ALLOWED: dict[str, set[str]] = {
    **ATTRIBUTES,
    **{f"h{level}": {"id", "tabindex"} for level in range(1, 7)},
    "img": {"src", "alt", "loading"},
    "table": {"tabindex"},
    "pre": {"tabindex"},
}


@dataclass(frozen=True)
class HelpHeading:
    """A heading of the second level."""

    anchor: str
    text: str


@dataclass(frozen=True)
class RenderedPage:
    title: str
    html: SafeString
    headings: tuple[HelpHeading, ...]
    lost: tuple[str, ...]
    """Links that lead to no file of the help. They are shown as plain text."""


def anchor(text: str) -> str:
    """The name of a heading in links, as programs that show repositories make it."""
    return re.sub(r"[^\w -]", "", text.lower()).strip().replace(" ", "-")


@cache
def rendered(file: HelpFile) -> RenderedPage:
    """The page without its first heading, which the frame of the page shows."""
    parser = MarkdownIt("commonmark", {"html": False, "linkify": False}).enable(["table", "strikethrough"])
    tokens = parser.parse(file.text())
    lost: list[str] = []
    for token in tokens:
        if token.type == "inline":
            _lead(token.children or [], file, lost)
        elif token.type in ("table_open", "fence", "code_block"):
            token.attrSet("tabindex", "0")  # they scroll sideways, also by keyboard
    headings = _anchored(tokens)
    if tokens and tokens[0].type == "heading_open" and tokens[0].tag == "h1":
        tokens = tokens[3:]
    html = parser.renderer.render(grouped(tokens), parser.options, {}).replace("&lt;br&gt;", "<br>")
    html = html.replace(
        "<pre><code", '<pre tabindex="0"><code'
    )  # the parser puts the attributes of a fence on its code
    return RenderedPage(pages.title(file), _clean(html), tuple(headings), tuple(lost))


@cache
def line(text: str, file: HelpFile) -> SafeString:
    """Text within a line of `file`, such as what the list says about a page."""
    parser = MarkdownIt("commonmark", {"html": False, "linkify": False})
    tokens = parser.parseInline(text)
    for token in tokens:
        _lead(token.children or [], file, [])
    return _clean(parser.renderer.render(tokens, parser.options, {}))


def _clean(html: str) -> SafeString:
    clean = nh3.clean(
        html,
        tags={*TAGS, "img"},
        attributes=_ALLOWED,
        url_schemes={"http", "https", "mailto"},
        link_rel="noopener noreferrer",
    )
    return mark_safe(clean)  # noqa: S308  cleaned by the allow-list


def _anchored(tokens: Sequence[Token]) -> list[HelpHeading]:
    seen: Counter[str] = Counter()
    found = []
    for head, inline in zip(tokens, tokens[1:], strict=False):
        if head.type != "heading_open":
            continue
        text = "".join(child.content for child in inline.children or ())
        name = anchor(text)
        seen[name] += 1
        name = name if seen[name] == 1 else f"{name}-{seen[name] - 1}"
        head.attrSet("id", name)
        head.attrSet("tabindex", "-1")
        if head.tag == "h2":
            found.append(HelpHeading(name, text))
    return found


def _lead(children: list[Token], file: HelpFile, lost: list[str]) -> None:
    """Point links and pictures at pages of the help. A link whose text is the name of a page shows the title of the page."""
    closed: list[bool] = []
    for place, child in enumerate(children):
        if child.type == "image":
            given = _given(child, "src")  # a picture from elsewhere would tell its host who reads what
            child.attrSet("src", "" if _WITHIN.match(given) else _address(file, given, lost) or "")
            child.attrSet("loading", "lazy")
        elif child.type == "link_open":
            href = _given(child, "href")
            there = _address(file, href, lost)
            closed.append(there is None)
            if there is None:
                child.type, child.tag, child.attrs = "span_open", "span", {}
                continue
            child.attrSet("href", there)
            _name(children[place + 1], file, href)
        elif child.type == "link_close" and closed.pop():
            child.type, child.tag = "span_close", "span"


def _name(text: Token, file: HelpFile, href: str) -> None:
    """`[hacking.md](hacking.md)` is the page's title."""
    path = href.partition("#")[0]
    target = pages.named(file, path) if path else None
    if (
        target
        and target.is_page
        and text.type == "text"
        and path.endswith(text.content)
        and text.content.endswith(".md")
    ):
        text.content = pages.title(target)


def _address(file: HelpFile, href: str, lost: list[str]) -> str | None:
    if _WITHIN.match(href) or href.startswith("/"):
        return href
    there = pages.linked(file, href)
    if there is None:
        lost.append(href)
    return there


def _given(token: Token, name: str) -> str:
    value: Any = token.attrGet(name)
    return str(value or "")
