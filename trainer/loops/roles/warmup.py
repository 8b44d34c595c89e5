"""The warm-up of a judge and a rubric writer: both learn, token by token, what people wrote, before the first turn."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trainer.config.recipes.alternating import ROLES, AlternatingConfig, Role
from trainer.contracts import Example, Message
from trainer.contracts.plurals import with_noun
from trainer.inference.turns import TurnsUnfit, encode_turns
from trainer.seeding import derive_seed
from trainer.tasks.arm_demonstrations import ArmDemonstrations, Demonstrated

from ..learner.learner import Learner, Marked
from ..session.errors import RunFailed
from ..session.stage import Tell
from ..supervised.fitting import Fitter
from ..supervised.token_loss import TokenLoss
from .two_roles import TwoRoles

_OF: Mapping[Role, tuple[str, str]] = {
    "judge": ("judgements by people", "pairs without a demonstration of a judgement"),
    "writer": ("rubrics by people", "prompts without a demonstration of a rubric"),
}
UNENCODED = "the model's chat template cannot hold it"


@dataclass(frozen=True)
class Lesson:
    """A demonstration as tokens, with the answer marked to be learnt."""

    key: str
    marked: Marked


@dataclass(frozen=True)
class Lessons:
    """The demonstrations of one role; `left_out` counts, by reason, what has no demonstration."""

    items: list[Lesson]
    left_out: Counter[str] = field(default_factory=Counter)

    def told(self, role: Role) -> list[str]:
        """Texts for the log, one line for each reason."""
        return [
            f"warm-up of the {role}: {with_noun(count, _OF[role][1])}: {why}" for why, count in self.left_out.items()
        ]


def lessons(
    examples: Sequence[Example], config: AlternatingConfig, tokenizer: Any, ends: Sequence[int]
) -> dict[Role, Lessons]:
    """The demonstrations of the training examples, for each role that has a warm-up. Raises RunFailed if a role has nothing to learn from."""
    made, found = ArmDemonstrations(config), dict[Role, Lessons]()
    for role in ROLES:
        if config.warmup is None or not config.warmup.steps_of(role):
            continue
        mine = Lessons([])
        for example in examples:
            for each in made.of(role, example) if example.split != "heldout" else ():
                lesson = each if isinstance(each, str) else _encoded(each, role, config, tokenizer, ends)
                if isinstance(lesson, str):
                    mine.left_out[lesson] += 1
                else:
                    mine.items.append(lesson)
        if not mine.items:
            why = "; ".join(f"{with_noun(count, _OF[role][1])}: {why}" for why, count in mine.left_out.items())
            raise RunFailed(
                f"warmup.{role}_steps: the training data have no {_OF[role][0]} to warm up on"
                f"{f' ({why})' if why else ''}; give such data, or set it to 0"
            )
        found[role] = mine
    return found


class Warming:
    """The steps before the first turn: those of the judge, then those of the writer. Each step is an update on a batch of demonstrations."""

    def __init__(
        self,
        config: AlternatingConfig,
        found: Mapping[Role, Lessons],
        learner: Learner,
        roles: TwoRoles,
        run_dir: Path,
    ) -> None:
        self._config, self._lessons, self._roles = config, found, roles
        self._token_loss = TokenLoss(learner)
        self._fitters = {
            role: Fitter(
                learner,
                config.warming(role),
                run_dir,
                mine.items,
                lambda lesson: (lesson.marked.read,),
                shuffle=True,
                seed=derive_seed(config.seed, "warm-up", role),
            )
            for role, mine in found.items()
        }

    def step(self, number: int, role: Role, tell: Tell) -> None:
        """Raises StopRequested with nothing changed."""
        assert self._config.warmup is not None  # noqa: S101 - for the types: no step of it comes without
        fitter, first = self._fitters[role], number == 1 or self._config.warming_at(number - 1) != role
        before = self._roles.trained
        self._roles.train(role)
        try:
            fitted = fitter.step(number, self._config.warmup.batch_size, self._loss, tell, f"warm-up of the {role}")
        except BaseException:
            self._roles.train(before)
            raise
        self._roles.changed(role)
        if first:
            self._tell_begin(number, role, tell)
        told = {"loss": fitted.loss, "grad_norm": fitted.grad_norm, "epoch": fitter.epoch}
        speed = fitted.metrics(self._config.optim.micro_batch_tokens)
        kept = {key: value for key, value in speed.items() if key.startswith(("optim/", "perf/"))}
        tell.metrics({f"warmup/{role}_{name}": value for name, value in told.items()} | kept)
        if number == self._config.warm_steps:
            self._roles.begin_turns()
            tell.log(f"the warm-up is over after {with_noun(number, 'steps')}; the turns begin")

    @property
    def phases(self) -> int:
        """The number of roles that have a warm-up: each is a phase of the run, and the turns are the next one."""
        return len(self._fitters)

    def state(self) -> dict[str, Any]:
        return {role: fitter.state() for role, fitter in self._fitters.items()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Raises ValueError if the state belongs to other demonstrations."""
        for role, fitter in self._fitters.items():
            if role not in state:
                raise ValueError(f"the checkpoint has no warm-up of the {role}")
            fitter.restore(state[role])

    def _tell_begin(self, number: int, role: Role, tell: Tell) -> None:
        mine = self._lessons[role]
        phase = float(2 if role == "writer" and "judge" in self._lessons else 1)
        counts = {"demonstrations": len(mine.items), "left_out": mine.left_out.total()}
        tell.metrics({"phase/number": phase} | {f"warmup/{role}_{name}": float(n) for name, n in counts.items()})

    def _loss(self, micro: Sequence[Lesson], batch: Sequence[Lesson]) -> Any:
        return self._token_loss.of([each.marked for each in micro], [each.marked for each in batch])


def _encoded(
    found: Demonstrated, role: Role, config: AlternatingConfig, tokenizer: Any, ends: Sequence[int]
) -> Lesson | str:
    """The demonstration as tokens, or a text that says why it is left out."""
    own = config.judge if role == "judge" else config.writer
    conversation = [*found.asked, Message(role="assistant", content=found.text)]
    try:
        turns = encode_turns(tokenizer, conversation, {len(conversation) - 1}, ends)
    except TurnsUnfit:
        return UNENCODED
    if len(turns.learnt) > own.max_new_tokens:
        return f"it is longer than {role}.max_new_tokens = {own.max_new_tokens}"
    if turns.learnt[0] > config.data.max_prompt_tokens:
        return f"its question is longer than data.max_prompt_tokens = {config.data.max_prompt_tokens}"
    return Lesson(found.key, Marked(turns.tokens, turns.learnt))
