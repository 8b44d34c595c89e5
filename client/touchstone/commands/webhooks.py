"""Webhooks: list, add, what was delivered."""

from typing import Annotated

import typer

from .. import terminal
from ..terminal import PAGE, Limit, Lines, group, print_json, print_rows, refusals_printed

app = group("Webhooks: list, add, test, what was delivered.")


@app.command("list")
def webhooks_list(as_json: Lines = False) -> None:
    """Lists the webhooks of the workspace."""
    with refusals_printed():
        columns = {"id": "id", "address": "url", "active": "active", "events": "events"}
        print_rows(terminal.server().webhooks.all(page_size=PAGE), columns, as_json)


@app.command("add")
def webhooks_add(
    url: str,
    event: Annotated[list[str], typer.Option(help="Such as run.finished; may be repeated")],
) -> None:
    """Creates a webhook, and prints it with its secret, which is shown only now."""
    with refusals_printed():
        print_json(terminal.server().webhooks.create({"url": url, "events": event}))


@app.command("test")
def webhooks_test(webhook: int) -> None:
    """Sends a test."""
    with refusals_printed():
        print_json(terminal.server().webhooks.test(webhook))


@app.command("deliveries")
def webhooks_deliveries(
    webhook: int,
    state: Annotated[str, typer.Option(help="Such as failed")] = "",
    limit: Limit = 20,
    as_json: Lines = False,
) -> None:
    """Lists what was sent, and what the receiver answered."""
    with refusals_printed():
        rows = terminal.server().all(f"/webhooks/{webhook}/deliveries", state=state or None, limit=min(limit, PAGE))
        columns = {
            "id": "id",
            "event": "event",
            "state": "state",
            "tries": "attempts",
            "status": "status",
            "error": "error",
        }
        print_rows(rows, columns, as_json, limit)


@app.command("again")
def webhooks_again(webhook: int) -> None:
    """Sends all failed messages again, also those that wait for their next attempt."""
    with refusals_printed():
        print_json(terminal.server().webhooks.failed_again(webhook))
