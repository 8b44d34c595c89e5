"""The parts of the agreement page that are drawn from the stored report: coefficients by pair of people, matrices with tints."""

from typing import Any

from webapp.annotation.models import AgreementReport

from .pseudonyms import Faces

GRID_UP_TO = 16  # people; more are a list


def published(report: AgreementReport, people: Faces, newest: int) -> dict[str, Any]:
    """The report as the API returns it: raters by their pseudonyms, and whether newer answers are not counted yet."""
    body = report.body and {
        **report.body,
        "fields": [_renamed(field, people) for field in report.body["fields"]],
        "items": report.body["items"] and _renamed(report.body["items"], people),
    }
    fresh = report.through == newest and body is not None
    return {
        "state": "ready" if fresh else "computing",
        "computed_at": report.computed_at,
        "started_at": report.started_at,
        "report": body,
    }


def _renamed(part: dict[str, Any], people: Faces) -> dict[str, Any]:
    pairs = [{**pair, "raters": [people.pseudonym(user) for user in pair["raters"]]} for pair in part["pairs"]]
    return {**part, "pairs": pairs}


def grid(pairs: list[dict[str, Any]], people: Faces, measure: str = "cohen") -> dict[str, Any] | None:
    """A table of every person against every other person; None if there are too many people to show."""
    users = sorted({user for pair in pairs for user in pair["raters"]}, key=people.number)
    if not 2 <= len(users) <= GRID_UP_TO:
        return None
    found = {frozenset(pair["raters"]): pair for pair in pairs}
    rows = []
    for place, one in enumerate(users[1:], start=1):
        cells = [_cell(found.get(frozenset((one, two))), people, measure) for two in users[:place]]
        rows.append({"label": people.label(one), "cells": cells, "rest": range(len(users) - 1 - place)})
    return {"columns": [people.label(user) for user in users[:-1]], "rows": rows}


def _cell(pair: dict[str, Any] | None, people: Faces, measure: str) -> dict[str, Any] | None:
    if pair is None:
        return None
    one, two = (people.number(user) for user in pair["raters"])
    estimate = pair[measure]
    return {
        "key": f"{one}-{two}",
        "estimate": estimate,
        "value": estimate.get("value"),
        "n": pair.get("n", estimate.get("n")),
    }


def matrix(field: dict[str, Any], pair: dict[str, Any], people: Faces) -> dict[str, Any]:
    """The confusion matrix of one pair: rows are the first person's values, columns the second person's."""
    labels = [value["label"] for value in field["values"]]
    most = max((n for row in pair["matrix"] for n in row), default=0)
    rows = [
        {
            "label": labels[v],
            "cells": [
                {
                    "n": n,
                    "same": v == w,
                    "share": n / most if most else 0,
                    "values": (field["values"][v]["value"], field["values"][w]["value"]),
                    "says": (labels[v], labels[w]),
                }
                for w, n in enumerate(row)
            ],
            "total": sum(row),
        }
        for v, row in enumerate(pair["matrix"])
    ]
    totals = [sum(column) for column in zip(*pair["matrix"], strict=True)]
    one, two = pair["raters"]
    return {
        "rows": rows,
        "columns": labels,
        "totals": totals,
        "n": pair["n"],
        "first": people.label(one),
        "second": people.label(two),
        "key": f"{people.number(one)}-{people.number(two)}",
    }
