"""Recipe `dpo`: log-probabilities of compared answers, relative to those of the base model."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

import torch
from torch import Tensor

from trainer.config.recipe import RecipeConfig
from trainer.config.recipes.dpo import DpoConfig, DpoLoss
from trainer.contracts import Message
from trainer.inference.turns import encode_turns
from trainer.objectives import REGISTRY, PairBatch

from ..learner.export import write_model
from ..learner.learner import Learner, Sequence_
from ..learner.reference import Reference
from ..pairs.pair_reports import pair_metrics, pair_records
from ..pairs.preferences import Pair, PairSets, prepare_pairs
from ..prompts.data import read_examples
from ..session.stage import ModelOutput, StageJob, Tell
from ..supervised.fitting import Fitted, FittedStage, Fitter, Loss
from .sft import end_tokens

AnsweredPair = Pair[Sequence_]
_SHOWN = 40
"""The number of held-out pairs that an evaluation shows."""
_STILL = 1e-5
"""Margins below this value are rounding: the policy is still the reference, and orders nothing."""


class ReferenceScores(Protocol):
    """The log-probabilities that a reference gave the answers."""

    def of(self, sequence: Sequence_) -> Tensor:
        """Log-probabilities [T] of the answer's tokens."""
        ...


class PairLoss:
    """DPO of pairs, each in the order of its votes and weighted by the votes' shares: the mean loss over the votes."""

    def __init__(
        self, learner: Learner, terms: DpoLoss, reference: ReferenceScores, train: Sequence[AnsweredPair]
    ) -> None:
        self._learner, self._terms, self._reference = learner, terms, reference
        self._objective = REGISTRY["dpo"]
        self._params = self._objective.params(beta=terms.beta, sft_weight=terms.nll_weight)
        self._mean_strength = sum(pair.strength for pair in train) / len(train)

    def __call__(self, micro: Sequence[AnsweredPair], batch: Sequence[AnsweredPair]) -> Loss:
        logps, references = self._measure(micro)
        logp_ST, mask_ST, ref_ST = _padded(logps), _padded([torch.ones(len(x)) for x in logps]), _padded(references)
        turned = [place for place, pair in enumerate(micro) if pair.target < 1]
        pairs = torch.arange(len(micro))
        # Rows of the sides: 2 p is the preferred answer of pair p, 2 p + 1 the other; a turned pair has them swapped.
        better = torch.cat([2 * pairs, 2 * pairs[turned] + 1])
        worse = torch.cat([2 * pairs + 1, 2 * pairs[turned]])
        strengths = [pair.strength for pair in micro] + [micro[place].against for place in turned]
        shares = [pair.target for pair in micro] + [1 - micro[place].target for place in turned]
        record = PairBatch(
            logp_ST[better],
            logp_ST[worse],
            mask_ST[better],
            mask_ST[worse],
            ref_ST[better],
            ref_ST[worse],
            total_pairs=float(len(batch)),
            margin_P=self._margins(strengths),
            weight_P=self._weights(strengths, shares),
        )
        return Loss(self._objective.loss(record, self._params).loss, self._told(micro, logps, references))

    @torch.no_grad()
    def rewards(self, pairs: Sequence[AnsweredPair]) -> list[tuple[float, float]]:
        """beta times what training has added to the log-probability of (the preferred answer, the other)."""
        logps, references = self._measure(pairs)
        found = self._rewards(logps, references)
        return list(zip(found[::2], found[1::2], strict=True))

    def _measure(self, pairs: Sequence[AnsweredPair]) -> tuple[list[Tensor], list[Tensor]]:
        sequences = [side.tokens for pair in pairs for side in pair.sides]
        scored = self._learner.score(sequences, 1.0)
        return [part.logp_T for part in scored], [self._reference.of(sequence) for sequence in sequences]

    def _rewards(self, logps: Sequence[Tensor], references: Sequence[Tensor]) -> list[float]:
        beta = self._terms.beta
        leads = zip(logps, references, strict=True)
        return [beta * (float(logp.detach().double().sum()) - float(ref.double().sum())) for logp, ref in leads]

    def _told(
        self, micro: Sequence[AnsweredPair], logps: Sequence[Tensor], references: Sequence[Tensor]
    ) -> Mapping[str, list[float]]:
        rewards = self._rewards(logps, references)
        chosen, rejected = rewards[::2], rewards[1::2]
        leads = [c - r for c, r, pair in zip(chosen, rejected, micro, strict=True) if not pair.tie]
        nll = [-float(logp.detach().mean()) for logp in logps[::2]]
        return {"margin": leads, "reward_chosen": chosen, "reward_rejected": rejected, "nll": nll}

    def _margins(self, strengths: Sequence[float]) -> Tensor | None:
        terms = self._terms
        return terms.margin * torch.tensor(strengths) if terms.strength == "margin" else None

    def _weights(self, strengths: Sequence[float], shares: Sequence[float]) -> Tensor:
        weights = torch.tensor(shares, dtype=torch.float64)
        if self._terms.strength == "weight":
            weights = weights * torch.tensor(strengths, dtype=torch.float64) / self._mean_strength
        return weights


class DpoStage(FittedStage):
    """One step is a batch of pairs and one update. The reference is measured before the first step."""

    _learner: Learner

    def __init__(self, job: StageJob, sets: PairSets[Sequence_], learner: Learner) -> None:
        self._job, self._sets, self._learner = job, sets, learner
        self._config: DpoConfig = job.config
        self.evaluates = bool(sets.heldout)
        self._started = False
        self._fitter: Fitter[AnsweredPair] = Fitter(
            learner,
            job.config,
            job.run_dir,
            sets.train,
            texts_of,
            job.config.data.shuffle,
            phases=job.config.phases,
            known=lambda pair: pair.known,
        )
        sequences = [side.tokens for pair in [*sets.train, *sets.heldout] for side in pair.sides]
        base = job.models["base"]
        self._reference = Reference(learner, base, job.run_dir, self._config.model.dtype, sequences)
        self._loss = PairLoss(learner, self._config.loss, self._reference, sets.train)

    def open(self, step: int) -> None:
        self._started = step > 0

    def step(self, number: int, tell: Tell) -> None:
        self._measure_reference(tell)
        fitted = self._fitter.step(number, self._config.batch_size, self._loss, tell)
        self._started = True
        tell.metrics(update_metrics(fitted, self._config) | {"train/epoch": self._fitter.epoch})

    def evaluate(self, number: int, tell: Tell) -> dict[str, float]:
        self._measure_reference(tell)
        pairs = self._sets.heldout
        rewards: dict[int, tuple[float, float]] = {}
        for places in self._fitter.measured(pairs, tell):
            found = self._loss.rewards([pairs[place] for place in places])
            rewards |= dict(zip(places, found, strict=True))
        ordered = [rewards[place] for place in range(len(pairs))]
        tell.rollouts(pair_records(pairs[:_SHOWN], ordered[:_SHOWN], "eval"))
        return self._fitter.evaluated(reward_metrics(pairs, ordered))

    def outputs(self) -> Iterator[ModelOutput]:
        base = self._job.models["base"]
        yield ModelOutput(
            "policy", "policy", partial(write_model, config=self._config, base=base, trained=self._learner)
        )

    def _measure_reference(self, tell: Tell) -> None:
        if self._reference.known:
            return
        pairs = [*self._sets.train, *self._sets.heldout]
        packs = [
            [side.tokens for place in found.places for side in pairs[place].sides]
            for found in self._fitter.packs(pairs)
        ]
        self._reference.ready(self._started, packs, tell.watch("measuring the reference", "learner"))


def update_metrics(fitted: Fitted, config: RecipeConfig) -> dict[str, float]:
    """The metrics of an update on pairs."""
    values = fitted.metrics(config.optim.micro_batch_tokens)
    values |= {f"train/{name}": sum(each) / len(each) for name, each in fitted.values.items() if each}
    if margins := fitted.values["margin"]:
        values["train/accuracy"] = sum(margin > 0 for margin in margins) / len(margins)
    return values


def reward_metrics(pairs: Sequence[Pair[Any]], rewards: Sequence[tuple[float, float]]) -> dict[str, float]:
    """Metrics of the implicit rewards of pairs. While all rewards are still 0, metrics of their order are left out."""
    margins = [chosen - rejected for chosen, rejected in rewards]
    values = pair_metrics(pairs, margins)
    if max(map(abs, margins)) < _STILL:
        values = {key: values[key] for key in ("eval/pairs", "eval/loss", "eval/margin")}
    chosen, rejected = zip(*rewards, strict=True)
    return values | {
        "eval/reward_chosen": sum(chosen) / len(pairs),
        "eval/reward_rejected": sum(rejected) / len(pairs),
    }


def make(job: StageJob) -> DpoStage:
    """Raises RunFailed, ValueError or OSError if examples or models cannot be used."""
    config: DpoConfig = job.config
    examples = read_examples(
        job.examples
    )  # before anything heavy: a mistake in the examples needs no model to be found
    from trainer.inference.models import best_device, load_model, load_tokenizer

    base = job.models["base"]
    tokenizer = load_tokenizer(base)
    model = load_model(base, config.model.dtype).to(best_device())
    encode = partial(encode_answer, tokenizer, end_tokens(model, tokenizer))
    sets = prepare_pairs(examples, config.data, encode, _length, config.evaluation.max_examples)
    for line in sets.left_out:
        job.monitor.log(line, level="warning")
    if not sets.heldout and config.evaluation.max_examples:
        job.monitor.log("no pair is held out, so there is no evaluation", level="warning")
    learner = Learner(model, config, reference=False)
    epochs = config.steps * config.batch_size / len(sets.train)
    job.monitor.log(
        f"{len(sets.train):,} training and {len(sets.heldout):,} held-out pairs; {learner.size:,} trained parameters; "
        f"{epochs:.2g} passes over the data"
    )
    return DpoStage(job, sets, learner)


def encode_answer(tokenizer: Any, ends: Sequence[int], prompt: Sequence[Message], answer: str) -> Sequence_:
    """Prompt and answer as a sampler has them; the answer includes the token that ends it. Raises TurnsUnfit."""
    turns = encode_turns(tokenizer, [*prompt, Message(role="assistant", content=answer)], (len(prompt),), ends)
    first = turns.learnt[0]
    return turns.tokens[:first], turns.tokens[first:]


def texts_of(pair: AnsweredPair) -> tuple[tuple[int, ...], ...]:
    """The tokens of both answers that go through the model. The last token is predicted and never read."""
    return tuple((side.tokens[0] + side.tokens[1])[:-1] for side in pair.sides)


def _length(sequence: Sequence_) -> int:
    return len(sequence[0]) + len(sequence[1])


def _padded(parts: Sequence[Tensor]) -> Tensor:
    """[len(parts), T], zeros on the right."""
    width = max(map(len, parts))
    return torch.stack([torch.nn.functional.pad(part, (0, width - len(part))) for part in parts])
