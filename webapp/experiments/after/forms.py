"""The form of a run that is launched once another run has finished."""

from dataclasses import dataclass

from trainer.config import ConfigInvalid
from webapp.core.problems import Conflict, Invalid

from ..launch.forms import RunForm
from ..models import ChainStep, Run
from . import queries, services


@dataclass
class StepForm(RunForm):
    """`first`: the run for which it waits, or for which the step `behind` waits."""

    first: Run | None = None
    behind: ChainStep | None = None
    with_output: bool = True
    also: tuple[int, ...] = ()  # other runs for which it waits
    also_steps: tuple[int, ...] = ()  # steps for whose runs it waits

    def stand(self, first: Run, behind: ChainStep | None) -> "StepForm":
        """Sets the place of the step; the model with which it can begin follows from it."""
        self.first, self.behind = first, behind
        self.with_output = self.with_output and self.leaves
        return self

    @property
    def leaves(self) -> bool:
        """Whether the run or step before it leaves a model with which a run can begin."""
        return services.leaves_a_policy(self.behind.asked["recipe"] if self.behind else self._first.recipe)

    @property
    def _first(self) -> Run:
        if self.first is None:
            raise ValueError("first choose the run before it")
        return self.first

    @property
    def waits_for(self) -> str:  # type: ignore[override]  # the form of a launch waits for nothing
        return self.before

    @property
    def before(self) -> str:
        return str(self.behind or self.first)

    @property
    def also_choices(self) -> list[queries.ChainOffer]:
        """Other runs and steps for which it can wait."""
        chosen = {*map(str, self.also), *(f"{queries.STEP}{each}" for each in self.also_steps)}
        return queries.joinable(self._first, self.behind, chosen)

    @property
    def also_problem(self) -> str:
        return self.problems.get("also", "") or self.problems.get("also_steps", "")

    def begin(self) -> None:
        """Fills a new form with the model that exists: the one with which the run before it begins."""
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
            also=self.also,
            also_steps=self.also_steps,
        )
        try:
            return services.add(self.membership, self._first, asked, self.behind, self.key)
        except (ConfigInvalid, Invalid) as error:
            self.problems = services.invalid(error)
        except Conflict as error:
            self.problems = {"": error.message}
        return None
