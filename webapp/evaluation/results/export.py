"""An evaluation as a file: JSON with every case, or one self-contained HTML page."""

import json
import re
from collections.abc import Iterator

from django.http import HttpResponse, StreamingHttpResponse
from django.template.loader import render_to_string

from webapp.core.pages import exported

from .. import queries, serializers
from ..models import Evaluation
from ..recipes import RECIPES
from . import numbers


def as_json(row: Evaluation) -> StreamingHttpResponse:
    """One object: the evaluation as the API shows it, and `cases`. Streamed: a case is written when it is read."""
    response = StreamingHttpResponse(_json(row), content_type="application/json")
    response["Content-Disposition"] = f'attachment; filename="{_file_name(row)}.json"'
    return response


def _json(row: Evaluation) -> Iterator[str]:
    head = json.dumps(serializers.evaluation(row), ensure_ascii=False)
    yield head[:-1] + ', "cases": [\n'
    for i, case in enumerate(queries.every_case(row)):
        yield (",\n" if i else "") + json.dumps(serializers.case(case), ensure_ascii=False)
    yield "\n]}\n"


def as_html(row: Evaluation) -> HttpResponse:
    """Numbers, charts and config. The cases are counted; the JSON has them."""
    page = render_to_string(
        "evaluation/report.html",
        {
            "evaluation": row,
            "recipe": RECIPES.get(row.recipe),
            "results": row.results,
            "style": exported.style("report.css"),
            "config": json.dumps(row.config, indent=2, ensure_ascii=False),
            "cases": row.cases.count(),
        },
    )
    response = HttpResponse(page, content_type="text/html; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{_file_name(row)}.html"'
    return response


def as_csv(row: Evaluation) -> HttpResponse:
    """The numbers alone; see `numbers`."""
    response = HttpResponse(numbers.as_csv(row), content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{_file_name(row)}.csv"'
    return response


def _file_name(row: Evaluation) -> str:
    words = re.sub(r"[^a-z0-9]+", "-", row.name.lower().encode("ascii", "ignore").decode()).strip("-")
    return f"evaluation-{row.pk}{'-' if words else ''}{words[:60]}"
