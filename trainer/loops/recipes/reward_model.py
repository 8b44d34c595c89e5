"""Recipe `reward_model`: scores of answers, learnt from comparisons of them."""

import json
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch

from trainer.config.recipes.reward_model import RewardModelConfig
from trainer.contracts import Message
from trainer.inference.reward_models import SCALE
from trainer.inference.turns import encode_conversation
from trainer.objectives import REGISTRY, ScoreBatch
from trainer.seeding import derive_seed

from ..learner.export import write_model
from ..learner.scalar import Scorer
from ..pairs.pair_reports import baselines, calibration_metrics, pair_metrics, pair_records
from ..pairs.preferences import Pair, PairSets, prepare_pairs
from ..prompts.data import read_examples
from ..session.stage import ModelOutput, StageJob, Tell
from ..supervised.fitting import FittedStage, Fitter, Loss

Text = tuple[int, ...]
ScoredPair = Pair[Text]
_SHOWN = 40
"""The number of held-out pairs that an evaluation shows."""
_CENTRED_ON = 500
"""The number of training pairs, the first in the dataset's order, whose mean score is the zero of the exported model."""


class RewardModelStage(FittedStage):
    """One step is a batch of pairs and one update with the Bradley-Terry loss of their votes."""

    _learner: Scorer

    def __init__(self, job: StageJob, sets: PairSets[Text], scorer: Scorer) -> None:
        self._job, self._sets, self._learner = job, sets, scorer
        self._config: RewardModelConfig = job.config
        self.evaluates = bool(sets.heldout)
        self._fitter: Fitter[ScoredPair] = Fitter(
            scorer,
            job.config,
            job.run_dir,
            sets.train,
            lambda pair: (pair.chosen.tokens, pair.rejected.tokens),
            job.config.data.shuffle,
            phases=job.config.phases,
            known=lambda pair: pair.known,
        )
        self._objective = REGISTRY["bradley_terry"]
        self._params = self._objective.params(centre=self._config.centre)
        self._baselines: dict[str, float] | None = None

    def open(self, step: int) -> None:
        """Nothing to prepare."""

    def step(self, number: int, tell: Tell) -> None:
        fitted = self._fitter.step(number, self._config.batch_size, self._loss, tell)
        values = fitted.metrics(self._config.optim.micro_batch_tokens) | {"train/epoch": self._fitter.epoch}
        if margins := fitted.values.get("margin"):
            values["train/margin"] = sum(margins) / len(margins)
            values["train/accuracy"] = sum(margin > 0 for margin in margins) / len(margins)
        tell.metrics(values)

    def evaluate(self, number: int, tell: Tell) -> dict[str, float]:
        pairs = self._sets.heldout
        if self._baselines is None:
            self._baselines = self._measure_baselines(tell)
        scores = self._scores(pairs, tell)
        margins = [chosen - rejected for chosen, rejected in scores]
        values, histograms = calibration_metrics(pairs, margins)
        tell.metrics({}, histograms)
        tell.rollouts(pair_records(pairs[:_SHOWN], scores[:_SHOWN], "eval"))
        every = torch.tensor(scores, dtype=torch.float64)
        spread = {"eval/reward_mean": float(every.mean()), "eval/reward_std": float(every.std(correction=0))}
        return self._fitter.evaluated(pair_metrics(pairs, margins) | values | spread | self._baselines)

    def outputs(self) -> Iterator[ModelOutput]:
        yield ModelOutput("reward_model", "reward_model", self._write, head="scalar")

    def _loss(self, micro: Sequence[ScoredPair], batch: Sequence[ScoredPair]) -> Loss:
        """Every pair counts in the order of its votes, weighted by their shares: the mean loss over the votes."""
        texts = [side.tokens for pair in micro for side in pair.sides]
        chosen_P, rejected_P = self._learner.scores(texts).view(-1, 2).unbind(-1)
        turned = torch.tensor([place for place, pair in enumerate(micro) if pair.target < 1], dtype=torch.long)
        target_P = torch.tensor([pair.target for pair in micro], dtype=torch.float64)
        strength_P = torch.tensor([pair.strength for pair in micro], dtype=torch.float64)
        against_P = torch.tensor([pair.against for pair in micro], dtype=torch.float64)
        record = ScoreBatch(
            torch.cat([chosen_P, rejected_P[turned]]),
            torch.cat([rejected_P, chosen_P[turned]]),
            self._config.margin * torch.cat([strength_P, against_P[turned]]),
            float(len(batch)),
            torch.cat([target_P, 1 - target_P[turned]]),
        )
        margins = (chosen_P - rejected_P).tolist()
        return Loss(
            self._objective.loss(record, self._params).loss,
            {"margin": [margin for margin, pair in zip(margins, micro, strict=True) if not pair.tie]},
        )

    @torch.no_grad()
    def _scores(self, pairs: Sequence[ScoredPair], tell: Tell) -> list[tuple[float, float]]:
        """The scores (chosen, rejected) of each pair."""
        found: dict[int, tuple[float, float]] = {}
        for places in self._fitter.measured(pairs, tell):
            texts = [side.tokens for place in places for side in pairs[place].sides]
            scored = self._learner.scores(texts).view(-1, 2).tolist()
            found |= {place: (chosen, rejected) for place, (chosen, rejected) in zip(places, scored, strict=True)}
        return [found[place] for place in range(len(pairs))]

    def _measure_baselines(self, tell: Tell) -> dict[str, float]:
        """The baselines, measured once and reported at every evaluation, so that their curves are lines to compare with."""
        found = baselines(self._sets.train, self._sets.heldout)
        if self._config.evaluation.embeddings:
            from ..pairs.embedding_baseline import embedding_accuracy

            reached = embedding_accuracy(self._sets.train, self._sets.heldout, tell.watch("embedding", "evaluation"))
            if reached is not None:
                found["baseline/embedding"] = reached
        return found

    def _write(self, folder: Path) -> None:
        write_model(folder, self._config, self._job.models["base"], self._learner, "SEQ_CLS")
        (folder / SCALE).write_text(json.dumps(self._centre(), indent=2, sort_keys=True) + "\n")

    @torch.no_grad()
    def _centre(self) -> dict[str, Any]:
        """Mean and standard deviation of the scores over the first training pairs, and the number of their texts. Preferences do not say
        where 0 lies; with the mean as zero the scores of different runs compare.
        """
        pairs = self._sets.train[:_CENTRED_ON]
        scores: dict[int, list[float]] = {}
        for found in self._fitter.packs(pairs):
            texts = [side.tokens for place in found.places for side in pairs[place].sides]
            scored = self._learner.scores(texts).view(-1, 2).tolist()
            scores |= dict(zip(found.places, scored, strict=True))
        every = torch.tensor([scores[place] for place in range(len(pairs))], dtype=torch.float64)
        return {"offset": float(every.mean()), "scale": float(every.std(correction=0)), "texts": every.numel()}


def make(job: StageJob) -> RewardModelStage:
    """Raises RunFailed, ValueError or OSError if examples or models cannot be used."""
    config: RewardModelConfig = job.config
    examples = read_examples(
        job.examples
    )  # before anything heavy: a mistake in the examples needs no model to be found
    from trainer.inference.models import best_device, load_scalar, load_tokenizer

    base = job.models["base"]
    tokenizer = load_tokenizer(base)
    model = load_scalar(base, config.model.dtype, derive_seed(config.seed, "head")).to(best_device())
    scorer = Scorer(model, config)
    encode = partial(_encoded, tokenizer, scorer)
    sets = prepare_pairs(examples, config.data, encode, len, config.evaluation.max_examples)
    for line in sets.left_out:
        job.monitor.log(line, level="warning")
    if not sets.heldout and config.evaluation.max_examples:
        job.monitor.log("no pair is held out, so there is no evaluation", level="warning")
    epochs = config.steps * config.batch_size / len(sets.train)
    job.monitor.log(
        f"{len(sets.train):,} training and {len(sets.heldout):,} held-out pairs; {scorer.size:,} trained parameters; "
        f"{epochs:.2g} passes over the data"
    )
    return RewardModelStage(job, sets, scorer)


def _encoded(tokenizer: Any, scorer: Scorer, prompt: Sequence[Message], answer: str) -> Text:
    return scorer.read(encode_conversation(tokenizer, [*prompt, Message(role="assistant", content=answer)]))
