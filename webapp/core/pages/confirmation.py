"""The question before something is deleted for good: a separate page, so that it works without scripts."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

SURE = "sure"  # of the form that answers the question


def question(
    request: HttpRequest, *, title: str, text: str, yes: str, back: str, no: str = "Keep it"
) -> HttpResponse | None:
    """The page that asks, or None once somebody has said yes. `title` is the question, `text` what will happen, `yes` and `no` the
    words of the buttons, `back` the address where everything stays as it is. The answer repeats what was posted."""
    if request.POST.get(SURE):
        return None
    kept = [(name, value) for name, values in request.POST.lists() if name != "csrfmiddlewaretoken" for value in values]
    context = {"title": title, "text": text, "yes": yes, "no": no, "back": back, "kept": kept, "sure": SURE}
    return render(request, "sure.html", context)
