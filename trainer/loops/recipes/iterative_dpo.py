"""Recipe `iterative_dpo`: rounds of sampling, labelling, and DPO updates on the pairs whose labels are kept."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from trainer.config.recipes.dpo import DpoLoss
from trainer.config.recipes.iterative_dpo import IterativeDpoConfig
from trainer.contracts import Response
from trainer.contracts.plurals import with_noun
from trainer.inference.prefix import pack_units
from trainer.rollouts import Trajectory
from trainer.seeding import derive_seed

from ..learner.export import write_model
from ..learner.learner import Learner, Sequence_
from ..learner.reference import log_probs, untrained
from ..pairs.labelling import Label
from ..pairs.pair_reports import pair_records
from ..pairs.preferences import Pair, PairSide
from ..pairs.rounds import Labelled, Rounds
from ..policy.parts import Parts
from ..prompts.data import Prompt, prepare_prompts, read_examples
from ..session.errors import StopRequested, Unrewarded
from ..session.phases import PhaseWatch
from ..session.stage import ModelOutput, StageJob, State, Tell
from ..supervised.fitting import Fitter
from .dpo import AnsweredPair, PairLoss, texts_of, update_metrics

_SHOWN = 40
"""The number of pairs of a round that are shown."""


@dataclass(frozen=True)
class ReferenceLogps:
    """The log-probabilities [T] that the reference gave the answers of a round."""

    logps: Mapping[Sequence_, Tensor]

    def of(self, sequence: Sequence_) -> Tensor:
        return self.logps[sequence]


@dataclass(frozen=True)
class Round:
    """A round under way, numbered from 0. `fitter` is None if no pair was kept: the steps then change no weights."""

    number: int
    pairs: list[AnsweredPair]
    reference: ReferenceLogps
    fitter: Fitter[AnsweredPair] | None


class IterativeDpoStage:
    """One step is one update; the first step of a round samples and labels before it."""

    def __init__(self, job: StageJob, parts: Parts) -> None:
        self._job, self._parts = job, parts
        self._config: IterativeDpoConfig = job.config
        self._learner: Learner = parts.learner
        self._rounds = Rounds(job, parts)
        self._phases = PhaseWatch(self._config.phases, parts.schedule, self._rounds.planner.order, self._config.steps)
        self._round: Round | None = None
        self._half_begun = False
        self._spent: dict[str, Any] = {}
        """The amounts that judges with a budget had spent at the last checkpoint."""
        self.evaluates = bool(parts.prompts.heldout)

    def open(self, step: int) -> None:
        """Nothing to prepare: the sampler gets weights when it samples."""

    def step(self, number: int, tell: Tell) -> None:
        wanted = (number - 1) // self._config.round_steps
        if self._round is None or self._round.number != wanted:
            self._round = self._begun(wanted, number, tell)
        values = {"label/round": float(wanted + 1)}
        current = self._round
        if current.fitter is not None:
            loss = PairLoss(self._learner, DpoLoss(**self._config.loss.model_dump()), current.reference, current.pairs)
            phase = f"updating, {self._rounds.name(wanted)}"
            fitted = current.fitter.step(number, self._config.batch_size, loss, tell, phase)
            values |= update_metrics(fitted, self._config) | {"train/epoch": current.fitter.epoch}
        tell.metrics(values)
        self._phases.over(number, tell)

    def evaluate(self, number: int, tell: Tell) -> dict[str, float]:
        values = self._rounds.evaluate(number, tell)
        self._parts.schedule.measured(values)
        return values

    def state(self) -> State:
        if (
            not self._half_begun
        ):  # otherwise the judge's answers for this round are in no checkpoint yet, and stay in the journal
            self._spent = self._rounds.state_dict()
        values: dict[str, Any] = {
            "order": self._rounds.planner.order.state_dict(),
            "rewards": self._spent,
            "untrained": self._rounds.untrained,
            "phases": self._parts.schedule.state_dict(),
        }
        tensors = self._learner.state_tensors()
        if (current := self._round) is not None:
            values["round"] = {"number": current.number, "pairs": [_saved(pair) for pair in current.pairs]}
            if current.fitter is not None:
                values["batches"] = current.fitter.state()
                logps = [current.reference.of(sequence) for sequence in _sequences(current.pairs)]
                tensors["round"] = {"reference": torch.cat(logps)}
        return State(values, tensors)

    def restore(self, step: int, state: State) -> None:
        values = state.values
        self._rounds.planner.order.load_state_dict(values["order"])
        self._parts.schedule.load_state_dict(values.get("phases", {}))
        self._spent, self._rounds.untrained = values["rewards"], values["untrained"]
        self._rounds.load_state_dict(self._spent)
        self._learner.load_state_tensors(state.tensors)
        if saved := values.get("round"):
            pairs = [self._restored(each) for each in saved["pairs"]]
            logps: dict[Sequence_, Tensor] = {}
            if pairs:
                sequences = _sequences(pairs)
                flat = state.tensors["round"]["reference"]
                parts = flat.split([len(answer) for _, answer in sequences])
                logps = dict(zip(sequences, parts, strict=True))
            self._round = self._made(saved["number"], pairs, ReferenceLogps(logps))
            if self._round.fitter is not None:
                self._round.fitter.restore(values["batches"])

    def outputs(self) -> Iterator[ModelOutput]:
        write = partial(write_model, config=self._config, base=self._parts.base, trained=self._learner)
        yield ModelOutput("policy", "policy", write)

    def close(self) -> None:
        self._rounds.close()
        self._learner.close()

    def _begun(self, number: int, step: int, tell: Tell) -> Round:
        """Sample, label and measure, in the phase that the round begins with. After a stop in the middle everything is as before."""
        before, self._half_begun = self._phases.state_dict(), True
        try:
            self._phases.enter(step, tell)
            if self._config.phases:
                tell.metrics({"rollout/temperature": self._parts.rollout.temperature})
            found = self._rounds.labelled(number, step, tell)
            pairs = [self._pair(label) for label in found.kept]
            reference = self._referred(pairs, step, f"measuring, {self._rounds.name(number)}", tell)
        except (StopRequested, Unrewarded) as error:
            self._phases.load_state_dict(before)
            # answers without a value are dropped, so the checkpoint must say what they cost
            self._half_begun = isinstance(error, StopRequested)
            raise
        self._half_begun = False
        self._parts.schedule.measured(found.metrics)
        self._tell_round(number, found, pairs, tell)
        return self._made(number, pairs, reference)

    def _tell_round(self, number: int, found: Labelled, pairs: Sequence[AnsweredPair], tell: Tell) -> None:
        tell.metrics(found.metrics)
        name = self._rounds.name(number)
        if not pairs:
            tell.log(
                f"{name}: none of {with_noun(len(found.labels), 'pairs')} was kept, so it changes no weights", "warning"
            )
            return
        tell.log(f"{name}: {len(pairs):,} of {with_noun(len(found.labels), 'pairs')} kept")
        kept = found.kept[:_SHOWN]
        scores = [(_worth(label.better, 1.0), _worth(label.worse, 0.0)) for label in kept]
        if self._config.comparing:
            scores = [(1.0, 0.0)] * len(kept)
        names = sorted({name for label in kept for name in label.better.reward.components})
        parts = {name: [_values(label, name) for label in kept] for name in names}
        parts = {name: values for name, values in parts.items() if None not in values}
        tell.rollouts(pair_records(pairs[:_SHOWN], scores, "train", parts))  # type: ignore[arg-type]

    def _referred(self, pairs: Sequence[AnsweredPair], step: int, phase: str, tell: Tell) -> ReferenceLogps:
        """The reference's log-probabilities of the answers, measured before the round's first update."""
        if not pairs:
            return ReferenceLogps({})
        budget = self._config.optim.micro_batch_tokens
        packs = [
            [side.tokens for place in found.places for side in pairs[place].sides]
            for found in pack_units([texts_of(pair) for pair in pairs], budget)
        ]
        start = self._config.reference == "start"
        with untrained(self._learner, self._parts.base) if start and step > 1 else nullcontext():
            return ReferenceLogps(log_probs(self._learner, packs, tell.watch(phase, "learner"), untrained=start))

    def _made(self, number: int, pairs: list[AnsweredPair], reference: ReferenceLogps) -> Round:
        fitter: Fitter[AnsweredPair] | None = None
        if pairs:
            seed = derive_seed(self._config.seed, "batches", number)
            times = self._parts.schedule.lr_times
            fitter = Fitter(self._learner, self._config, self._job.run_dir, pairs, texts_of, True, seed, lr_times=times)
        return Round(number, pairs, reference, fitter)

    def _pair(self, label: Label) -> AnsweredPair:
        prompt = self._parts.tasks[label.first.plan.example_key]
        return _paired(prompt, _answer(prompt, label.better), _answer(prompt, label.worse), label.first_won)

    def _restored(self, saved: Mapping[str, Any]) -> AnsweredPair:
        prompt = self._parts.tasks[saved["key"]]
        better, worse = (
            PairSide(Response(id=name, text=text), (prompt.tokens, tuple(tokens)))
            for name, text, tokens in saved["sides"]
        )
        return _paired(prompt, better, worse, saved["first_chosen"])


def make(job: StageJob) -> IterativeDpoStage:
    """Raises RunFailed, ValueError or OSError if examples or models cannot be used."""
    config: IterativeDpoConfig = job.config
    examples = read_examples(
        job.examples
    )  # before anything heavy: a mistake in the examples needs no model to be found
    from trainer.inference.build import build_sampler
    from trainer.inference.models import best_device, load_model, load_tokenizer

    base, sampling = job.models["base"], config.sampling(config.rewards)
    tokenizer = load_tokenizer(base)
    prompts = prepare_prompts(examples, tokenizer, sampling)
    for line in prompts.left_out:
        job.monitor.log(line, level="warning")
    if not prompts.heldout and config.evaluation.max_examples:
        job.monitor.log("no example is held out, so there is no evaluation", level="warning")
    learner = Learner(load_model(base, config.model.dtype).to(best_device()), config, reference=False)
    sampler = build_sampler(sampling, base, tokenizer)
    job.generated.by(sampler)
    job.monitor.log(
        f"{len(prompts.train):,} training and {len(prompts.heldout):,} held-out prompts; {learner.size:,} trained parameters"
    )
    sampling = sampling.model_copy(update={"phases": config.phases})
    return IterativeDpoStage(job, Parts(sampling, prompts, tokenizer, sampler, learner, job.run_dir, base))


def _paired(
    prompt: Prompt, better: PairSide[Sequence_], worse: PairSide[Sequence_], first_chosen: bool
) -> AnsweredPair:
    """A pair whose label is sure: it has one vote."""
    example = prompt.example
    return Pair(
        key=example.key,
        domain=example.domain,
        prompt=example.prompt,
        chosen=better,
        rejected=worse,
        target=1.0,
        strength=0.0,
        against=0.0,
        pro=1,
        con=0,
        ties=0,
        first_chosen=first_chosen,
    )


def _answer(prompt: Prompt, sampled: Trajectory) -> PairSide[Sequence_]:
    """The answer as the tokens that were sampled."""
    return PairSide(Response(id=str(sampled.plan.index), text=sampled.text), (prompt.tokens, sampled.tokens))


def _sequences(pairs: Sequence[AnsweredPair]) -> list[Sequence_]:
    return list(dict.fromkeys(side.tokens for pair in pairs for side in pair.sides))


def _saved(pair: AnsweredPair) -> dict[str, Any]:
    sides = [[side.response.id, side.response.text, list(side.tokens[1])] for side in pair.sides]
    return {"key": pair.key, "sides": sides, "first_chosen": pair.first_chosen}


def _worth(answer: Trajectory, otherwise: float) -> float:
    return otherwise if answer.reward.total is None else answer.reward.total


def _values(label: Label, name: str) -> tuple[float, float] | None:
    better, worse = label.better.reward.components.get(name), label.worse.reward.components.get(name)
    return None if better is None or worse is None else (better, worse)
