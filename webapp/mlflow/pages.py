"""Pages for links that MLflow's client prints, such as `/mlflow/#/experiments/4/runs/KEY`, and the answer to a client with a wrong address."""

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_GET

from webapp.accounts.access import member, require
from webapp.accounts.models import Role
from webapp.core.network.addresses import public_url
from webapp.tracking import access

from .endpoint import error_response


@require_GET
@member(Role.REVIEWER)
def links(request: HttpRequest) -> HttpResponse:
    """The browser does not send what follows the `#`, so a script of the page reads it and goes to the page here."""
    return render(request, "mlflow/links.html")


@require_GET
@member(Role.REVIEWER)
def run(request: HttpRequest, key: str) -> HttpResponse:
    return redirect("run", run_id=access.logged_read(require(request), key).run_id)


@csrf_exempt
@login_not_required
def elsewhere(request: HttpRequest, rest: str) -> HttpResponse:
    """MLflow's client asks here if its address lacks the path. It shows people the message."""
    here = f"{public_url()}/mlflow"
    return error_response(
        404,
        "ENDPOINT_NOT_FOUND",
        f"MLflow's protocol has an address of its own here: set MLFLOW_TRACKING_URI to {here}.",
    )
