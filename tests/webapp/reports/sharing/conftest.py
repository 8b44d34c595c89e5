"""A shared report with a chart, a table and a rollout of two runs, and other runs that are not shared."""

from collections.abc import Callable

import pytest

from tests.webapp.experiments.sharing.conftest import allowed, elsewhere, secret_run, set_score  # noqa: F401 - fixtures
from tests.webapp.reports.conftest import seeds  # noqa: F401 - fixtures
from webapp.experiments.models import Run, ShareLink
from webapp.reports import services as reports
from webapp.reports.models import ReportPage
from webapp.reports.sharing import services

BODY = """Scaffolds **help**.

```chart
metric: reward/mean
query: is:any
title: In training
```

```runs
query: is:any
columns: state, by, reward/mean, config.seed
seeds: apart
```

```rollout
run: {run}
step: 2
prompt: 4
response: 2
```
"""


@pytest.fixture
def report(team, seeds: list[Run]) -> ReportPage:  # noqa: F811
    return reports.create(team.researcher, "What we saw", BODY.format(run=seeds[0].pk))


@pytest.fixture
def link(team, allowed, report: ReportPage) -> tuple[ShareLink, str]:  # noqa: F811
    """A link that the researcher made, as (row, secret)."""
    return services.share(team.researcher, report, "For the paper")


@pytest.fixture
def shared(team, allowed, seeds: list[Run]) -> Callable[[str], str]:  # noqa: F811
    """The secret of a link to a report with this text."""

    def sharing(body: str) -> str:
        return services.share(team.researcher, reports.create(team.researcher, "Other", body))[1]

    return sharing
