"""The list of the help, its pages, and the same files for programs."""

from urllib.parse import quote

from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import cache_control
from django.views.decorators.http import require_safe

from webapp.accounts.authentication.credentials import live_token
from webapp.core.requests.authorization import bearer_token

from . import pages, rendering


@require_safe
def index(request: HttpRequest) -> HttpResponseBase:
    """The list of pages."""
    readme = pages.by_name().get(pages.LIST)
    listed = [
        {
            "title": section.title,
            "entries": [
                {
                    "href": pages.address(each.file),
                    "title": each.title,
                    "about": rendering.line(each.about[:1].upper() + each.about[1:], readme),
                }
                for each in section.entries
            ],
        }
        for section in pages.sections()
        if readme
    ]
    return render(request, "help/index.html", {"sections": listed})


@require_safe
@cache_control(private=True, max_age=300)
def page(request: HttpRequest, slug: str) -> HttpResponseBase:
    """A page, or another file that pages show or link to."""
    file = pages.files().get(slug)
    if file is None:
        raise Http404("The help has no such page.")
    if file.name == pages.LIST:
        return redirect("help")
    if not file.is_page:
        return _file(file)
    found = rendering.rendered(file)
    return render(request, "help/page.html", {"file": file, "page": found, "source": f"/help/{file.slug}.md"})


@login_not_required
@require_safe
def source(request: HttpRequest, slug: str) -> HttpResponseBase:
    """A page as Markdown. A person who is signed in may read it, and a program with an API token of any area."""
    token = bearer_token(request.headers.get("Authorization"))
    if not request.user.is_authenticated and live_token(token) is None:
        if token:
            answer = HttpResponse("Send an API token as a bearer token.", status=401, content_type="text/plain")
            answer["WWW-Authenticate"] = "Bearer"
            return answer
        return redirect(f"{reverse('sign_in')}?next={quote(request.path)}")
    file = pages.files().get(slug)
    if file is None or not file.is_page:
        raise Http404("The help has no such page.")
    return _file(file)


def _file(file: pages.HelpFile) -> HttpResponse:
    kind = file.kind if file.kind.startswith("image/") else f"{file.kind}; charset=utf-8"
    return HttpResponse(file.path.read_bytes(), content_type=kind)
