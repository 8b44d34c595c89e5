"""What every page shows of notices: how many wait, and the button that watches what the page is about."""

from typing import Any

from django import template
from django.template import RequestContext

from webapp.accounts.models import Membership

from .. import queries

register = template.Library()


@register.simple_tag(takes_context=True)
def unread_notices(context: RequestContext) -> int:
    """Counted once, however often the page shows it."""
    request = context["request"]
    membership: Membership | None = getattr(request, "membership", None)
    if not hasattr(request, "unread_notices"):
        request.unread_notices = queries.unread(membership) if membership else 0
    counted: int = request.unread_notices
    return counted


@register.inclusion_tag("notices/_watch.html", takes_context=True)
def watch_button(context: RequestContext, subject: queries.Watchable) -> dict[str, Any]:
    request = context["request"]
    on = queries.watched(request.membership, subject)
    return {"request": request, "kind": queries.kind_of(subject), "subject": subject, "on": on}
