from django.apps import AppConfig


class ExperimentsConfig(AppConfig):
    name = "webapp.experiments"
    label = "experiments"

    def ready(self) -> None:
        """Registers this app's functions with other apps: facts of examples for the pages of datasets; samples of runs and training data of
        models for evaluations; exports of checkpoints and tasks of claims for jobs; gathered rollouts for imports; measures of claims,
        sweeps and chains for runs that end; places in the line for jobs."""
        from .after import rounds as chains  # noqa: F401
        from .claims import measures, tasks  # noqa: F401  they register themselves
        from .lifecycle import waiting_line  # noqa: F401
        from .outputs import exporting, trained_on  # noqa: F401
        from .rollouts import datasets, example_facts, sampled_responses  # noqa: F401
        from .runs import examples  # noqa: F401
        from .sweeps import rounds  # noqa: F401
