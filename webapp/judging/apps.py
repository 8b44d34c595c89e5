from django.apps import AppConfig


class JudgingConfig(AppConfig):
    name = "webapp.judging"
    label = "judging"

    def ready(self) -> None:
        """Imports the modules that register functions with apps below: jobs of projects, decisions in stress tests, jobs of the cluster."""
        from .asking import jobs  # noqa: F401
        from .stress_tests import services as stress_tests  # noqa: F401
        from .suggestions import services as suggestions  # noqa: F401
