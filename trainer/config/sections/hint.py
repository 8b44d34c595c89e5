"""The part of the reference reasoning that a policy sees while it is sampled (AHRL)."""

from collections.abc import Iterator, Mapping
from typing import Literal

from ..errors import FieldProblem
from ..fields import Section, knob
from .scaffold import RatioMode


class Hint(Section):
    """AHRL: the rollout prompt shows the first part of the reference reasoning. It shows less as the run continues, and less for easier
    prompts."""

    p0: float = knob(
        0.5, "Share of the reasoning that the prompt shows in the first step", unit="of the tokens", gt=0, le=1
    )
    gamma: float = knob(
        0.05,
        "How fast the share falls: at step t, counted from 0, it is p0 exp(-gamma t p) for a prompt with pass rate p. A "
        "prompt that is never solved keeps its hint",
        unit="per step",
        ge=0,
        le=1000,
    )
    unknown: float | None = knob(
        None,
        "Pass rate to assume for prompts without one (the examples' `meta.pass_rate`); empty: refuse a run with such prompts",
        ge=0,
        le=1,
    )
    without: Literal["refuse", "plain", "drop"] = knob(
        "refuse",
        "If prompts have neither `meta.reasoning` nor a reference: `refuse` the run, train on them `plain` (without a "
        "hint), or `drop` them",
    )
    ratio_mode: RatioMode = knob(
        "unscaffolded", "Whether the prompt contains the hint when log-probabilities are computed", advanced=True
    )

    def data_problems(self, train: Mapping[str, int]) -> Iterator[FieldProblem]:
        """`train`: the training counts of the training prompts. The paths begin at the config's root."""
        prompts, known, rated = (train.get(key, 0) for key in ("examples", "reasonings", "rated"))
        unrated, unsolved = prompts - rated, train.get("rated_unsolved", 0)
        if prompts and prompts == train.get("rated_solved", 0):
            yield FieldProblem(
                "hint",
                f"all {prompts:,} training prompts were always solved before the run (`meta.pass_rate`), so a hint can "
                "teach nothing; switch it off, or use harder prompts",
            )
        if prompts and self.gamma and prompts == unsolved + (unrated if self.unknown == 0 else 0):
            yield FieldProblem(
                "hint.gamma",
                f"{_never_solved(unrated, prompts)}, so no hint would fade and the policy would never try without one; set this to 0 if you want that, or add "
                "easier prompts",
            )
        if prompts and not known:
            yield FieldProblem(
                "hint", "none of the training prompts has reference reasoning (`meta.reasoning`, else the reference)"
            )
        elif known < prompts and self.without == "refuse":
            yield FieldProblem(
                "hint.without",
                f"{prompts - known:,} of {prompts:,} training prompts have neither `meta.reasoning` nor a reference; choose "
                "'plain' to train on them without a hint, or 'drop'",
            )
        if unrated and self.unknown is None:
            yield FieldProblem(
                "hint.unknown",
                f"{_unrated(unrated, prompts)}; set the rate that they count as: at 0 their hint never fades, at 1 it fades fastest",
            )

    def data_notes(self, train: Mapping[str, int]) -> Iterator[str]:
        """Notes on how prompts are treated if something about them is not known. `train`: the training counts of the training prompts."""
        prompts, known, rated = (train.get(key, 0) for key in ("examples", "reasonings", "rated"))
        solved, unsolved = train.get("rated_solved", 0), train.get("rated_unsolved", 0)
        if rated < prompts and self.unknown is not None:
            fades = f"fades as if it were {self.unknown:g}" if self.unknown and self.gamma else "never fades"
            others = ""
            if rated and rated == solved:
                others = f"; the other {rated:,} were always solved, so a hint can teach nothing there"
            elif rated and rated == unsolved and self.gamma:
                others = f"; none of the other {rated:,} was ever solved, so their hint never fades"
            yield f"{_unrated(prompts - rated, prompts)}: their hint {fades} (`hint.unknown`){others}"
        if 0 < known < prompts and self.without != "refuse":
            what = "are left out" if self.without == "drop" else "are trained on without a hint"
            yield (
                f"{prompts - known:,} of {prompts:,} training prompts ({(prompts - known) / prompts:.0%}) have no reference reasoning and "
                f"{what} (`hint.without`)"
            )


def _never_solved(unrated: int, prompts: int) -> str:
    if not unrated:
        return f"none of the {prompts:,} training prompts was ever solved before the run (`meta.pass_rate`)"
    others = ", and none of the others was ever solved" if unrated < prompts else ""
    return f"{_unrated(unrated, prompts)} and count as never solved (`hint.unknown`){others}"


def _unrated(count: int, prompts: int) -> str:
    return f"{count:,} of {prompts:,} training prompts ({count / prompts:.0%}) have no pass rate yet (`meta.pass_rate`)"
