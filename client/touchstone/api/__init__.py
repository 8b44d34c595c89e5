"""The API of the server, in groups. A group is loaded when it is first used. Made by `python -m scripts.client` from the OpenAPI document of the server: do not edit."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from ..http import Connection

if TYPE_CHECKING:
    from .accounts import Accounts
    from .annotation import Annotation
    from .claims import Claims
    from .costs import Costs
    from .datasets import Datasets
    from .endpoints import Endpoints
    from .evaluations import Evaluations
    from .experiments import Experiments
    from .installation import Installation
    from .judges import Judges
    from .lineage import Lineage
    from .models import Models
    from .needs import Needs
    from .notices import Notices
    from .projects import Projects
    from .recipes import Recipes
    from .repeats import Repeats
    from .reports import Reports
    from .retention import Retention
    from .rollouts import Rollouts
    from .runs import Runs
    from .share_links import ShareLinks
    from .sweeps import Sweeps
    from .table import Table
    from .try_it import TryIt
    from .verifiers import Verifiers
    from .webhooks import Webhooks
    from .weights_jobs import WeightsJobs


class Groups(Connection):
    """A method for each operation of the API."""

    @cached_property
    def accounts(self) -> Accounts:
        from .accounts import Accounts

        return Accounts(self)

    @cached_property
    def annotation(self) -> Annotation:
        from .annotation import Annotation

        return Annotation(self)

    @cached_property
    def claims(self) -> Claims:
        from .claims import Claims

        return Claims(self)

    @cached_property
    def costs(self) -> Costs:
        from .costs import Costs

        return Costs(self)

    @cached_property
    def datasets(self) -> Datasets:
        from .datasets import Datasets

        return Datasets(self)

    @cached_property
    def endpoints(self) -> Endpoints:
        from .endpoints import Endpoints

        return Endpoints(self)

    @cached_property
    def evaluations(self) -> Evaluations:
        from .evaluations import Evaluations

        return Evaluations(self)

    @cached_property
    def experiments(self) -> Experiments:
        from .experiments import Experiments

        return Experiments(self)

    @cached_property
    def installation(self) -> Installation:
        from .installation import Installation

        return Installation(self)

    @cached_property
    def judges(self) -> Judges:
        from .judges import Judges

        return Judges(self)

    @cached_property
    def lineage(self) -> Lineage:
        from .lineage import Lineage

        return Lineage(self)

    @cached_property
    def models(self) -> Models:
        from .models import Models

        return Models(self)

    @cached_property
    def needs(self) -> Needs:
        from .needs import Needs

        return Needs(self)

    @cached_property
    def notices(self) -> Notices:
        from .notices import Notices

        return Notices(self)

    @cached_property
    def projects(self) -> Projects:
        from .projects import Projects

        return Projects(self)

    @cached_property
    def recipes(self) -> Recipes:
        from .recipes import Recipes

        return Recipes(self)

    @cached_property
    def repeats(self) -> Repeats:
        from .repeats import Repeats

        return Repeats(self)

    @cached_property
    def reports(self) -> Reports:
        from .reports import Reports

        return Reports(self)

    @cached_property
    def retention(self) -> Retention:
        from .retention import Retention

        return Retention(self)

    @cached_property
    def rollouts(self) -> Rollouts:
        from .rollouts import Rollouts

        return Rollouts(self)

    @cached_property
    def runs(self) -> Runs:
        from .runs import Runs

        return Runs(self)

    @cached_property
    def share_links(self) -> ShareLinks:
        from .share_links import ShareLinks

        return ShareLinks(self)

    @cached_property
    def sweeps(self) -> Sweeps:
        from .sweeps import Sweeps

        return Sweeps(self)

    @cached_property
    def table(self) -> Table:
        from .table import Table

        return Table(self)

    @cached_property
    def try_it(self) -> TryIt:
        from .try_it import TryIt

        return TryIt(self)

    @cached_property
    def verifiers(self) -> Verifiers:
        from .verifiers import Verifiers

        return Verifiers(self)

    @cached_property
    def webhooks(self) -> Webhooks:
        from .webhooks import Webhooks

        return Webhooks(self)

    @cached_property
    def weights_jobs(self) -> WeightsJobs:
        from .weights_jobs import WeightsJobs

        return WeightsJobs(self)
