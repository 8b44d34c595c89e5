"""The kinds of pages that links can show. The comparison is registered here; an app above registers its own kind."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from django.http import HttpRequest, HttpResponse

from ..models import ShareLink
from .access import OpenedLink


@dataclass(frozen=True)
class ListedLink:
    """A link in the list of links: the thing that it shows, the page of the workspace that shows the same, and the reason if it opens nothing."""

    shows: str
    page: str
    over: str = ""


@dataclass(frozen=True)
class SharedKind:
    """`page` answers the person who opens a link of this kind; `listed` tells of many links at once, by their ids."""

    page: Callable[[HttpRequest, OpenedLink], HttpResponse]
    listed: Callable[[Sequence[ShareLink]], Mapping[int, ListedLink]]


KINDS: dict[str, SharedKind] = {}
