"""Markdown by models and strangers as safe HTML: a whole text, a line of a page, the beginning of a text in a list."""

from collections.abc import Sequence
from functools import lru_cache
from re import compile as pattern
from unicodedata import bidirectional

import nh3
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from mdit_py_plugins.dollarmath import dollarmath_plugin

MAX_CHARACTERS = 200_000  # beyond this a browser chokes on the HTML; such text is shown as it is
MAX_PIECE = 20_000  # characters that are parsed at once: brackets that do not close take a fifth of a second then
CUT_FROM = 10_000  # characters of a longer text from which on it is cut where the next block begins
FENCE = pattern(r" {0,3}(`{3,}|~{3,})")
MAX_FORMULA = 4_000  # of one between brackets: without an end it is not searched for through a whole book
BLOCKS = ("paragraph_open", "heading_open", "list_item_open", "th_open", "td_open")
# these hold blocks with a direction of their own, which `dir="auto"` would not look into
AROUND = ("bullet_list_open", "ordered_list_open", "blockquote_open")
RIGHT_TO_LEFT, STRONG = {"R", "AL"}, {"L", "R", "AL"}
TAGS = {
    *("p", "br", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "li", "blockquote", "pre", "code"),
    *("em", "strong", "s", "a", "table", "thead", "tbody", "tr", "th", "td", "span", "div"),
}
INLINE = {"br", "code", "em", "strong", "s", "a", "span"}
# one that is whole, and one that a cut has left without its end: a lone dollar may be a price
FORMULA = pattern(r"\$\$.+?\$\$|\$(?! )[^$]+\$|\\\(.+?\\\)|\\\[.+?\\\]")
BROKEN = pattern(r"\$\$|\$(?=[^$]*[\\^_{])|\\[(\[]")
MARKED = pattern(r"[*_`~$\\<>&\n]|\]\(")  # without any of it, a line is what it looks like
ATTRIBUTES = {"*": {"dir"}, "a": {"href", "title"}, "ol": {"start"}, "span": {"class"}, "div": {"class"}}


def _math(content: str, options: dict[str, bool]) -> str:
    """Formulas stay as their source, marked for the page's script, and readable without it."""
    mark = "math display" if options.get("display_mode") else "math"
    return f'<span class="{mark}" dir="ltr">{escape(content)}</span>'  # its letters tell no direction of the words around it


def _brackets(state: StateInline, silent: bool) -> bool:
    r"""Formulas between `\(` and `\)`, or `\[` and `\]`, as most models write them."""
    opening = state.src[state.pos : state.pos + 2]
    if opening not in (r"\(", r"\["):
        return False
    start = state.pos + 2
    end = state.src.find(r"\)" if opening == r"\(" else r"\]", start, min(state.posMax, start + MAX_FORMULA))
    if end < 0 or not state.src[start:end].strip():
        return False
    if not silent:
        token = state.push("math_inline" if opening == r"\(" else "math_inline_double", "math", 0)
        token.content, token.markup = state.src[start:end].strip(), opening
    state.pos = end + 2
    return True


def _displayed(renderer: object, tokens: Sequence[Token], index: int, options: object, env: object) -> str:
    """A displayed formula inside a paragraph stays inside it: a div there would end the paragraph."""
    return _math(tokens[index].content, {"display_mode": True})


@lru_cache(maxsize=1)
def _parser() -> MarkdownIt:
    # line breaks stand: people and models list choices without blank lines between them
    parser = MarkdownIt("commonmark", {"html": False, "linkify": False, "breaks": True})
    parser.enable(["table", "strikethrough"])
    parser.use(dollarmath_plugin, renderer=_math, allow_space=False, double_inline=True)
    parser.add_render_rule("math_inline_double", _displayed)
    parser.inline.ruler.before("escape", "math_brackets", _brackets)
    parser.disable("image")  # a picture from elsewhere would tell its host who reads what
    return parser


def _apart(tokens: Sequence[Token]) -> None:
    """Code has a direction of its own and gives the words around it none."""
    for token in tokens:
        for child in token.children or ():
            if child.type == "code_inline":
                child.attrSet("dir", "auto")


def _direct(tokens: Sequence[Token]) -> None:
    """Gives blocks their direction. What holds blocks begins from the right where its first text does: then numbers and
    lines beside it stand there as well. From the end, so that the text that follows is known."""
    rtl = False
    for token in reversed(tokens):
        if token.type == "inline":
            rtl = _right_to_left(token.content)
        elif token.type in BLOCKS:
            token.attrSet("dir", "auto")
        elif token.type in AROUND and rtl:
            token.attrSet("dir", "rtl")


def _right_to_left(text: str) -> bool:
    strong = (kind for kind in map(bidirectional, text) if kind in STRONG)
    return next(strong, "L") in RIGHT_TO_LEFT


def markdown(text: str | None) -> SafeString:
    """Markdown as HTML. Each block finds its own direction, so Arabic and Hebrew read from the right.

    The text is untrusted: raw HTML in it is shown as text, and what the parser makes goes through an allow-list.
    """
    if not text:
        return mark_safe("")  # noqa: S308  empty
    if len(text) > MAX_CHARACTERS:
        return mark_safe(f'<p dir="auto">{escape(text)}</p>')  # noqa: S308  escaped
    return mark_safe("".join(map(_block_html, _pieces(text))))  # noqa: S308  each is cleaned


def _block_html(text: str) -> str:
    if len(text) > MAX_PIECE and not FENCE.match(text):
        return f'<p dir="auto">{escape(text)}</p>'
    parser = _parser()
    tokens: Sequence[Token] = parser.parse(text)
    _direct(tokens)
    return _clean(parser, tokens, TAGS)


def _pieces(text: str) -> list[str]:
    """The text in pieces that are parsed separately, cut where a block begins: for some constructs the time grows with the square of a
    piece's length. Most texts are one piece."""
    if len(text) <= MAX_PIECE:
        return [text]
    pieces: list[list[str]] = [[]]
    size, fence, blank = 0, "", False
    for line in text.splitlines(keepends=True):
        mark = FENCE.match(line)
        starts = not fence and blank and not line[:1].isspace()
        if starts and (size + len(line) > CUT_FROM or mark):
            pieces.append([])
            size = 0
        if mark and not fence:
            fence = mark[1]
        elif fence and line.strip().startswith(fence) and not line.strip().strip(fence[0]):
            fence = ""
        pieces[-1].append(line)
        size, blank = size + len(line), not fence and not line.strip()
    return ["".join(piece) for piece in pieces if piece]


def line(text: str | None) -> SafeString:
    """Text that stands in a line of its own page, such as a criterion: emphasis, code, links and formulas as `markdown` has them, but no
    blocks and no displayed formulas. The template gives its place `dir="auto"`."""
    if not text:
        return mark_safe("")  # noqa: S308  empty
    if len(text) > MAX_PIECE or not MARKED.search(text):
        return mark_safe(escape(text))  # noqa: S308  escaped
    parser = _parser()
    return _clean(parser, parser.parseInline(text.strip()), INLINE)


def preview(text: str | None, most: int = 300) -> SafeString:
    """The beginning of a text, as a line without links: for lists. It is cut at `most` characters, and before a formula rather than in it.
    The template gives its place `dir="auto"`."""
    if not text:
        return mark_safe("")  # noqa: S308  empty
    words = " ".join(text[: 2 * most].split())
    start = _whole(words[:most])
    if len(start) < len(words) or len(text) > 2 * most:
        start = f"{start.rstrip()}…"
    if start.count("```") % 2:
        start += "```"
    if not MARKED.search(start):
        return mark_safe(escape(start))  # noqa: S308  escaped
    parser = _parser()
    return _clean(parser, parser.parseInline(start), INLINE - {"a"})


def _whole(text: str) -> str:
    """The text without a formula at its end that was cut off, unless nothing else would be left."""
    last = max((found.end() for found in FORMULA.finditer(text)), default=0)
    broken = BROKEN.search(text, last)
    return text[: broken.start()] if broken and broken.start() else text


def _clean(parser: MarkdownIt, tokens: Sequence[Token], tags: set[str]) -> SafeString:
    _apart(tokens)
    html = parser.renderer.render(tokens, parser.options, {})
    if tags <= INLINE:
        html = html.replace('<span class="math display"', '<span class="math"')  # the text itself has no quotes left
    clean = nh3.clean(
        html,
        tags=tags,
        attributes=ATTRIBUTES,
        url_schemes={"http", "https", "mailto"},
        link_rel="noopener noreferrer nofollow",
    )
    return mark_safe(clean)  # noqa: S308  cleaned by the allow-list above
