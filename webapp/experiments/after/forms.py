"""The form of a run, for one that is launched once another has finished."""

from dataclasses import dataclass

from trainer.config import ConfigInvalid
from webapp.core.problems import Conflict, Invalid

from ..launch.forms import RunForm
from ..models import ChainStep, Run
from . import services


@dataclass
class StepForm(RunForm):
    """`first`: the run it waits for, or that the step `behind` waits for."""

    first: Run | None = None
    behind: ChainStep | None = None
    with_output: bool = True

    def stand(self, first: Run, behind: ChainStep | None) -> "StepForm":
        """Where the step stands; what is there to begin with follows from it."""
        self.first, self.behind = first, behind
        self.with_output = self.with_output and self.leaves
        return self

    @property
    def leaves(self) -> bool:
        """Whether what is before it leaves a model that a run can begin with."""
        return services.leaves_a_policy(self.behind.asked["recipe"] if self.behind else self._first.recipe)

    @property
    def _first(self) -> Run:
        if self.first is None:
            raise ValueError("choose first which run comes before")
        return self.first

    @property
    def waits_for(self) -> str:  # type: ignore[override]  # the form of a launch waits for nothing
        return self.before

    @property
    def before(self) -> str:
        return str(self.behind or self.first)

    def begin(self) -> None:
        """A new form shows the model that is there: the one that the run before it begins with."""
        model = self.behind.asked["config"]["model"]["name"] if self.behind else self._first.base.name
        if self.with_output:
            self.raw["model"] = {**self.raw["model"], "name": model}

    def add(self) -> ChainStep | None:
        """The step, or None with `problems` filled."""
        if not self.check():
            return None
        asked = services.StepAsked(
            kind=ChainStep.Kind.RUN,
            recipe=self.recipe,
            config=self.raw,
            dataset=self._choice(),
            experiment=self.experiment.strip(),
            name=self.name,
            with_output=self.with_output,
        )
        try:
            return services.add(self.membership, self._first, asked, self.behind, self.key)
        except (ConfigInvalid, Invalid) as error:
            self.problems = services.invalid(error)
        except Conflict as error:
            self.problems = {"": error.message}
        return None
