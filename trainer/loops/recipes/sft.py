"""Recipe `sft`: log-probability of stored answers, one conversation at a time."""

import math
import statistics
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from trainer.config.recipes.sft import SftConfig
from trainer.contracts import RolloutRecord, Rubric
from trainer.curriculum import known_of
from trainer.objectives import REGISTRY, ObjectiveBatch
from trainer.rewards import Item
from trainer.rollouts import RewardScorer, RewardSetup

from ..learner.export import write_model
from ..learner.learner import Learner, Marked
from ..policy.reports import part_metrics
from ..policy.scoring_watch import ScoringWatch
from ..prompts.data import read_examples
from ..session.errors import RunFailed
from ..session.stage import ModelOutput, StageJob, State, Tell
from ..supervised.data_selection import selected
from ..supervised.demonstrations import Demonstration, DemonstrationSets, prepare_demonstrations
from ..supervised.fitting import Fitter, Loss

_SHOWN = 40
"""The number of held-out conversations that an evaluation shows token by token."""


@dataclass(frozen=True)
class _Parts:
    job: StageJob
    config: SftConfig
    sets: DemonstrationSets
    tokenizer: Any
    learner: Learner
    scorer: RewardScorer | None
    """Scores answers to held-out prompts, if there are any."""
    picked: list[int] | None = None
    """Places of the training conversations that are learnt; None stands for all."""


class SftStage:
    """One step is a batch of conversations and one update with the mean loss of their learnt tokens."""

    def __init__(self, parts: _Parts) -> None:
        self._parts, self._config = parts, parts.config
        self._learner, self._sets = parts.learner, parts.sets
        self.evaluates = bool(parts.sets.heldout)
        self._picked = parts.picked
        self._fitter = self._fitting()
        self._scorer = parts.scorer
        objective = REGISTRY["sft"]
        self._objective, self._params = objective, objective.params(aggregation=parts.config.mean_over)

    def _fitting(self) -> Fitter[Demonstration]:
        parts, train = self._parts, self._sets.train
        items = train if self._picked is None else [train[place] for place in self._picked]
        return Fitter(
            parts.learner,
            parts.config,
            parts.job.run_dir,
            items,
            lambda item: (_marked(item).read,),
            parts.config.data.shuffle,
            phases=parts.config.phases,
            known=lambda item: known_of(item.example),
        )

    def open(self, step: int) -> None:
        """Nothing to prepare."""

    def step(self, number: int, tell: Tell) -> None:
        fitted = self._fitter.step(number, self._config.batch_size, self._loss, tell)
        learnt = sum(fitted.values["tokens"])
        tell.metrics(
            fitted.metrics(self._config.optim.micro_batch_tokens)
            | {"train/tokens": learnt, "train/epoch": self._fitter.epoch}
        )

    @torch.no_grad()
    def evaluate(self, number: int, tell: Tell) -> dict[str, float]:
        items = self._sets.heldout
        logps: dict[int, Tensor] = {}
        for places in self._fitter.measured(items, tell):
            scored = self._learner.measure([_marked(items[place]) for place in places])
            logps |= {place: part.logp_T for place, part in zip(places, scored, strict=True)}
        tell.rollouts([self._record(place, items[place], logps[place]) for place in range(min(len(items), _SHOWN))])
        tokens = sum(len(logp_T) for logp_T in logps.values())
        loss = -math.fsum(float(logps[place].sum()) for place in range(len(items))) / tokens
        answered = self._generated(number, self._scorer, tell) if self._scorer else {}
        return self._fitter.evaluated({"eval/loss": loss} | answered)

    def state(self) -> State:
        values: dict[str, Any] = {"order": self._fitter.state()}
        if self._picked is not None:
            values["picked"] = self._picked
        if self._scorer:
            values["rewards"] = self._scorer.state_dict()
        return State(values, self._learner.state_tensors())

    def restore(self, step: int, state: State) -> None:
        if state.values.get("picked", self._picked) != self._picked:  # another machine may round differently
            self._picked = state.values["picked"]
            self._fitter = self._fitting()
        self._fitter.restore(state.values["order"])
        self._learner.load_state_tensors(state.tensors)
        if self._scorer:
            self._scorer.load_state_dict(
                state.values.get("rewards", {})
            )  # earlier versions, without judges here, saved none

    def outputs(self) -> Iterator[ModelOutput]:
        job = self._parts.job
        write = partial(write_model, config=self._config, base=job.models["base"], trained=self._learner)
        yield ModelOutput("policy", "policy", write)

    def close(self) -> None:
        self._learner.close()
        if self._scorer:
            self._scorer.close()

    def _loss(self, micro: Sequence[Demonstration], batch: Sequence[Demonstration]) -> Loss:
        scored = self._learner.measure([_marked(item) for item in micro])
        width = max(len(part.logp_T) for part in scored)
        logp_BT = torch.stack([torch.nn.functional.pad(p.logp_T, (0, width - len(p.logp_T))) for p in scored])
        mask_BT = torch.stack([(torch.arange(width) < len(p.logp_T)).float() for p in scored])
        tokens = float(sum(len(item.turns.learnt) for item in batch))
        record = ObjectiveBatch(logp_BT, mask_BT, total_sequences=float(len(batch)), total_tokens=tokens)
        loss = self._objective.loss(record, self._params).loss
        return Loss(loss, {"tokens": [float(len(item.turns.learnt)) for item in micro]})

    def _record(self, place: int, item: Demonstration, logp_T: Tensor) -> RolloutRecord:
        """The conversation from its first learnt token on, with the masked tokens in between."""
        tokens, learnt = item.turns
        first = learnt[0]
        logprobs = dict(zip(learnt, logp_T.tolist(), strict=True))
        shown = tokens[first:]
        return RolloutRecord(
            phase="eval",
            example_key=item.key,
            group=place,
            index=0,
            prompt=self._parts.tokenizer.decode(list(tokens[:first])),
            response=self._parts.tokenizer.decode(list(shown)),
            finish_reason="stop",
            components={"loss": -math.fsum(logprobs.values()) / len(logprobs)},
            facts={"learnt tokens": len(logprobs)},
            tokens=tuple(self._parts.tokenizer.decode([token]) for token in shown),
            logprobs=tuple(round(logprobs.get(first + at, 0.0), 4) for at in range(len(shown))),
            mask=tuple(float(first + at in logprobs) for at in range(len(shown))),
        )

    def _generated(self, number: int, scorer: RewardScorer, tell: Tell) -> dict[str, float]:
        """Measures of greedy answers to the held-out prompts, scored by their rubrics; {} if no held-out rubric can be scored."""
        from ..supervised.answering import greedy_answers

        asked = self._config.evaluation
        wanted = _prompts(self._sets.heldout, asked.judge)
        if not wanted:
            return {}
        answers = greedy_answers(
            self._learner,
            self._parts.tokenizer,
            [item.messages[:-1] for item in wanted],
            asked.max_new_tokens,
            tell.watch("answering", "evaluation"),
        )
        items = [
            Item(
                f"eval/{number}/{n}",
                w.example,
                w.example.rubric,
                a.text,
                len(a.tokens),
                asked.max_new_tokens,
                cut=a.finish_reason == "length",
            )
            for n, (w, a) in enumerate(zip(wanted, answers, strict=True))
        ]
        rewards = scorer.score(items, ScoringWatch(tell, len(items)))
        found = [reward.score for reward in rewards if reward.total is not None and reward.score is not None]
        values = {"eval/scored": float(len(found))}
        if found:
            values["eval/rubric_score"] = statistics.fmean(found)
        if len(found) > 1:
            values["eval/rubric_score_se"] = math.sqrt(statistics.variance(found) / len(found))
        parts = [part for reward in rewards for part in reward.parts]
        told = part_metrics(parts, {part.name for part in parts}) if asked.judge else {}
        return values | {key: value for key, value in told.items() if key.startswith("judge/")}


def _prompts(items: Sequence[Demonstration], judge: str) -> list[Demonstration]:
    """One of the conversations for each prompt whose rubric can be scored: an example with several chosen answers is one prompt."""
    found: dict[Hashable, Demonstration] = {}
    for item in items:
        if _decidable(item.example.rubric, judge):
            found.setdefault((item.key, item.messages[:-1]), item)
    return list(found.values())


def _decidable(rubric: Rubric | None, judge: str) -> bool:
    """Whether a verifier or a judge decides every criterion."""
    return rubric is not None and (bool(judge) or all(criterion.verifier for criterion in rubric.criteria))


def make(job: StageJob) -> SftStage:
    """Raises RunFailed, ValueError or OSError if examples or models cannot be used."""
    config: SftConfig = job.config
    examples = read_examples(
        job.examples
    )  # before anything heavy: a mistake in the examples needs no model to be found
    scorer = _scorer(job)
    from trainer.inference.common import once
    from trainer.inference.models import best_device, load_model, load_tokenizer

    base = job.models["base"]
    tokenizer = load_tokenizer(base)
    model = load_model(base, config.model.dtype).to(best_device())
    heldout = config.evaluation.max_examples
    sets: DemonstrationSets = once(
        ("demonstrations", base, tuple(map(id, examples)), config.data.model_dump_json(), heldout),
        lambda: prepare_demonstrations(examples, tokenizer, end_tokens(model, tokenizer), config.data, heldout),
    )
    for line in sets.left_out:
        job.monitor.log(line, level="warning")
    if not sets.heldout and config.evaluation.max_examples:
        job.monitor.log("no example is held out, so there is no evaluation", level="warning")
    places = selected(sets.train, model, config)
    learner = Learner(model, config, reference=False)
    learnt = len(sets.train) if places is None else len(places)
    chosen = "" if places is None else f" ({learnt:,} of them are learnt, data.select: {config.data.select})"
    epochs = config.steps * config.batch_size / learnt
    job.monitor.log(
        f"{len(sets.train):,} training{chosen} and {len(sets.heldout):,} held-out conversations; {learner.size:,} trained "
        f"parameters; {epochs:.2g} passes over what is learnt"
    )
    return SftStage(_Parts(job, config, sets, tokenizer, learner, scorer, places))


def _scorer(job: StageJob) -> RewardScorer | None:
    """Raises RunFailed if the judge was not given to the run."""
    config: SftConfig = job.config
    if not config.evaluation.generate:
        return None
    if config.evaluation.judge and config.evaluation.judge not in job.access.judges:
        raise RunFailed(f"evaluation.judge: no judge {config.evaluation.judge!r} was given to the run")
    return RewardSetup(config.scoring(), job.access).open(job.run_dir / "rewards.jsonl")


def end_tokens(model: Any, tokenizer: Any) -> list[int]:
    """The tokens that end a response; the tokenizer's comes first."""
    from trainer.inference.local import stop_token_ids

    found = stop_token_ids(model.generation_config, tokenizer)
    return sorted(found, key=lambda token: (token != tokenizer.eos_token_id, token))


def _marked(item: Demonstration) -> Marked:
    return Marked(item.turns.tokens, item.turns.learnt)
