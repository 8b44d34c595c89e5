from django.apps import AppConfig


class ReportsConfig(AppConfig):
    name = "webapp.reports"
    label = "reports"

    def ready(self) -> None:
        """Tells share links how a report is shown, and the rule of checkpoints which runs reports need."""
        from webapp.experiments.outputs.retention.candidates import RUN_KEEPERS, RunKeeper

        from . import queries
        from .sharing import public  # noqa: F401  it registers itself

        RUN_KEEPERS["reported"] = RunKeeper("of runs that a report shows", queries.runs_shown)
