"""Tags for notices on every page: the number of unread ones, and the button that watches the page's thing."""

from typing import Any

from django import template
from django.template import RequestContext

from webapp.accounts.models import Membership

from .. import queries
from ..models import noun

register = template.Library()


@register.simple_tag(takes_context=True)
def unread_notices(context: RequestContext) -> int:
    """The number of unread notices, counted once for a page."""
    request = context["request"]
    membership: Membership | None = getattr(request, "membership", None)
    if not hasattr(request, "unread_notices"):
        request.unread_notices = queries.unread(membership) if membership else 0
    counted: int = request.unread_notices
    return counted


@register.inclusion_tag("notices/_watch.html", takes_context=True)
def watch_button(context: RequestContext, subject: queries.Watchable) -> dict[str, Any]:
    request = context["request"]
    on, kind = queries.watched(request.membership, subject), queries.kind_of(subject)
    return {"request": request, "kind": kind, "noun": noun(kind), "subject": subject, "on": on}
