"""`/llms.txt`: what is here, for programs (llmstxt.org)."""

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from trainer.product import NAME
from webapp.core.network.addresses import public_url
from webapp.help import pages as help_pages

from .tools import tools


@login_not_required
@require_safe
def page(request: HttpRequest) -> HttpResponse:
    """Describes the product to programs. The text holds nothing of any workspace."""
    base = public_url()
    lines = [
        f"# {NAME}",
        "",
        "> Turns human judgement into reward models and better language models: datasets, annotation, judges, runs, evaluations.",
        "",
        "Everything needs an API token (`Authorization: Bearer ts_...`), which a person makes under Settings → API tokens.",
        "",
        "## Interfaces",
        "",
        f"- [OpenAPI document]({base}/api/v1/openapi.json): every operation of the REST API, with what it asks of a token",
        f"- [API reference]({base}/api/v1/docs): the same for people",
        f"- [MCP server]({base}/mcp): streamable HTTP; {len(tools())} tools, which are operations of the API",
        f"- [MLflow tracking]({base}/mlflow): set MLFLOW_TRACKING_URI to it to log runs from elsewhere",
        "",
        "## Documentation",
        "",
        f"The pages of {base}/help as Markdown, with the same token:",
        "",
        *(
            f"- [{entry.title}]({base}/help/{entry.file.slug}.md)"
            for section in help_pages.sections()
            for entry in section.entries
        ),
        "",
        "## Tools of the MCP server",
        "",
        *(f"- `{each.name}`: {each.told.split('. ')[0]}" for each in tools().values()),
        "",
    ]
    return HttpResponse("\n".join(lines), content_type="text/plain; charset=utf-8")
