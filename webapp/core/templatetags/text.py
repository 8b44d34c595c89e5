"""`{{ text|markdown }}`: text by models and strangers as safe HTML."""

from collections.abc import Sequence
from functools import lru_cache

import nh3
from django import template
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.token import Token

register = template.Library()

MAX_CHARACTERS = 200_000  # beyond this a browser chokes on the HTML; such text is shown as it is
BLOCKS = ("paragraph_open", "heading_open", "list_item_open", "blockquote_open", "th_open", "td_open")
TAGS = {
    *("p", "br", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "li", "blockquote", "pre", "code"),
    *("em", "strong", "s", "a", "table", "thead", "tbody", "tr", "th", "td", "span", "div"),
}
ATTRIBUTES = {"*": {"dir"}, "a": {"href", "title"}, "ol": {"start"}, "span": {"class"}, "div": {"class"}}


@lru_cache(maxsize=1)
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "linkify": False}).enable(["table", "strikethrough"])
    parser.disable("image")  # a picture from elsewhere would tell its host who reads what
    return parser


@register.filter
def markdown(text: str | None) -> SafeString:
    """Markdown as HTML. Each block finds its own direction, so Arabic and Hebrew read from the right.

    The text is untrusted: raw HTML in it is shown as text, and what the parser makes goes through an allow-list.
    """
    if not text:
        return mark_safe("")  # noqa: S308  empty
    if len(text) > MAX_CHARACTERS:
        return mark_safe(f'<p dir="auto">{escape(text)}</p>')  # noqa: S308  escaped
    parser = _parser()
    tokens: Sequence[Token] = parser.parse(text)
    for token in tokens:
        if token.type in BLOCKS:
            token.attrSet("dir", "auto")
    html = parser.renderer.render(tokens, parser.options, {})
    clean = nh3.clean(
        html,
        tags=TAGS,
        attributes=ATTRIBUTES,
        url_schemes={"http", "https", "mailto"},
        link_rel="noopener noreferrer nofollow",
    )
    return mark_safe(clean)  # noqa: S308  cleaned by the allow-list above
