from django.apps import AppConfig


class ExperimentsConfig(AppConfig):
    name = "webapp.experiments"
    label = "experiments"

    def ready(self) -> None:
        """Tells the pages of datasets what this app knows of an example, evaluations what runs have sampled and what
        models were trained on, jobs how checkpoints are exported and tasks of claims made, imports how rollouts are gathered, runs what their
        claims are measured by and which sweep or chain waits for them, and jobs when they have a place in the line."""
        from .after import rounds as chains  # noqa: F401
        from .claims import measures, tasks  # noqa: F401  they register themselves
        from .lifecycle import waiting_line  # noqa: F401
        from .outputs import exporting, trained_on  # noqa: F401
        from .rollouts import datasets, sampled  # noqa: F401
        from .runs import examples  # noqa: F401
        from .sweeps import rounds  # noqa: F401
