"""The address of a note: it leads to the response on which the note was written."""

from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from webapp.accounts.access import member, require

from ..access import READER
from . import access
from .queries import read


@member(READER)
@never_cache
@require_GET
def run_note(request: HttpRequest, run_id: int, note_id: int) -> HttpResponseBase:
    note = access.note_read(require(request), run_id, note_id)
    (found,) = read(note.run, [note])
    place = {"phase": note.phase, "step": note.step, "key": found.example_key, "group": note.group, "note": note.pk}
    wanted = {name: value for name, value in place.items() if value != ""}
    return redirect(f"{reverse('run_tab', args=[run_id, 'rollouts'])}?{urlencode(wanted)}")
