"""A report as one self-contained HTML file: charts as SVG, no script, its style inside."""

import re
from base64 import b64encode
from hashlib import sha256
from typing import Any

from django.http import HttpResponse
from django.template.loader import render_to_string
from django.utils import timezone
from django.utils.safestring import mark_safe

from webapp.accounts.models import Membership
from webapp.core.pages import exported
from webapp.experiments.access import runs_read
from webapp.experiments.table import comparing

from . import block_contents, svg
from .access import ReportReader
from .block_contents import ShownBlock
from .language import ReportWords
from .models import ReportPageVersion

MOST_KEYS = 12  # lines that the legend names
MOST_CHARTS = 60
"""Charts in one file: each asks for the curves of up to a thousand runs."""


def as_html(membership: Membership, version: ReportPageVersion) -> HttpResponse:
    """The report as this reader sees it now."""
    style = exported.style("report-file.css")
    digest = b64encode(sha256(f"\n{style}".encode()).digest()).decode()
    context = {
        "report": version.report,
        "version": version,
        "parts": _parts(membership, version.body),
        "exported": True,
        "now": timezone.now(),
        "style": mark_safe(f"<style>\n{style}</style>"),  # noqa: S308  a file of ours
        "policy": f"default-src 'none'; style-src 'sha256-{digest}'",
    }
    response = HttpResponse(render_to_string("reports/file.html", context), content_type="text/html; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{_file_name(version)}.html"'
    return response


def _parts(membership: Membership, body: str) -> list[ReportWords | ShownBlock]:
    """The parts with their charts, at most the first `MOST_CHARTS`."""
    parts, left = block_contents.pieces_of(ReportReader(membership), body), MOST_CHARTS
    found: list[ReportWords | ShownBlock] = []
    for part in parts:
        if isinstance(part, ShownBlock) and part.kind == "chart" and part.facts:
            n = len(part.facts["metrics"])
            full = ShownBlock(part.block, f"A file holds at most {MOST_CHARTS} charts. Look at this one on the page.")
            found.append(_drawn(membership, part) if n <= left else full)
            left -= n
        else:
            found.append(part)
    return found


def _drawn(membership: Membership, part: ShownBlock) -> ShownBlock:
    facts = part.facts
    runs = runs_read(membership, facts["ids"])
    compared = comparing.compare_runs(membership.workspace_id, runs, [])
    if facts["apart"]:
        groups = [(str(run), [run.pk]) for run in runs]
    else:
        groups = [(each.label, [runs[place].pk for place in each.places]) for each in compared.families]
    seeds = dict(zip((run.pk for run in runs), compared.seeds, strict=True))
    charts = [_chart(each, comparing.curves(runs, each["key"]), groups, seeds, facts) for each in facts["metrics"]]
    return ShownBlock(part.block, "", part.notes, {**facts, "charts": charts})


def _chart(
    metric: dict[str, Any],
    curves: comparing.Curves,
    groups: list[tuple[str, list[int]]],
    seeds: dict[int, float | None],
    facts: Any,
) -> dict[str, Any]:
    time = facts["axis"] == "time"
    if time:
        xs, held = svg.by_time(curves.held)
    else:
        xs, held = curves.steps, {run: values for run, (values, _) in curves.held.items()}
    those = [(label, [run for run in runs if run in held]) for label, runs in groups]
    lines = [
        svg.line(
            label, xs, [held[run] for run in runs], [seeds[run] for run in runs], facts["smoothing"], facts["band"]
        )
        for label, runs in those
        if runs
    ]
    ends = facts["range"] or (None, None)
    picture = svg.chart(metric["label"], lines, log=facts["log"], time=time, share=metric["share"], ends=ends)
    keys = [(place % svg.SERIES + 1, each.label) for place, each in enumerate(lines)]
    told = {"keys": keys[:MOST_KEYS], "more": max(0, len(keys) - MOST_KEYS)}
    return {**metric, "svg": picture, "banded": any(each.band for each in lines), **told}


def _file_name(version: ReportPageVersion) -> str:
    words = re.sub(r"[^a-z0-9]+", "-", version.title.lower().encode("ascii", "ignore").decode()).strip("-")
    return f"report-{version.report_id}{'-' if words else ''}{words[:60]}"
