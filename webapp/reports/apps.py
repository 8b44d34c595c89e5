from django.apps import AppConfig


class ReportsConfig(AppConfig):
    name = "webapp.reports"
    label = "reports"

    def ready(self) -> None:
        """Tells share links how a report is shown."""
        from .sharing import public  # noqa: F401  it registers itself
