"""Turns one step's responses into one or more optimiser updates."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import torch
from torch import Tensor

from trainer.config import OnPolicyConfig
from trainer.config.objectives.knobs import DistillParameters, OaplParameters
from trainer.config.objectives.policy import mismatch_weighted, parameters, sampler_is_old
from trainer.curriculum.wpsm import wpsm_weights
from trainer.inference.prefix import Pack, pack
from trainer.objectives import REGISTRY, ObjectiveBatch, ObjectiveResult
from trainer.rollouts import Trajectory

from ..learner.learner import Learner, Marked, ResponseLogps
from ..learner.teachers import Speaks
from ..session.errors import StopRequested


class Learned(NamedTuple):
    """The solved share of a prompt: `group` in the group of the response; `before` over the run, None at the prompt's first visit."""

    group: float
    before: float | None


class NotFinite(ArithmeticError):
    """Loss or gradient is NaN or infinite; the weights are still those before the update. `rows` are the responses that caused it,
    `updates` is the number of updates of the step that had changed the weights already.
    """

    def __init__(self, what: str, rows: list[int], updates: int = 0) -> None:
        self.what, self.rows, self.updates = what, rows, updates
        super().__init__(f"{what} is not a finite number")


@dataclass
class UpdateReport:
    """The results of the updates. Dicts and sets are by response (row of the step); all tensors are detached."""

    losses: list[float] = field(default_factory=list)
    """One for each optimiser update, as are the norms."""
    grad_norms: list[float] = field(default_factory=list)
    ratio: dict[int, Tensor] = field(default_factory=dict)
    weight: dict[int, Tensor] = field(default_factory=dict)
    entropy: dict[int, Tensor] = field(default_factory=dict)
    kl_old: dict[int, Tensor] = field(default_factory=dict)
    kl: dict[int, Tensor] = field(default_factory=dict)
    advantages: dict[int, float] = field(default_factory=dict)
    """Means over a response's tokens, if the objective makes its own advantages (distillation)."""
    token_advantages: dict[int, Tensor] = field(default_factory=dict)
    """The values of which these are the means."""
    apart: dict[int, Tensor] = field(default_factory=dict)
    """log pi_train - log pi_roll of the tokens [T], with the weights before the step; only if both read the same prompt, and if the sampler
    recorded the whole distribution."""
    scaled: set[int] | None = None
    """Responses with less weight because they are well learned; None if the config has no such weights."""
    extra: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    """Numbers that only some objectives report: for each micro-batch, the mean and the number of values it is a mean of."""
    tokens: int = 0
    """Tokens that went through a forward and a backward pass, shared prefixes counted for every response."""
    nodes: int = 0
    """Like `tokens`, with shared prefixes counted once: the tokens that were computed."""
    passes: int = 0
    skipped: int = 0
    """Updates that changed neither weights nor optimiser, because none of their responses had a gradient."""

    def take_in(self, other: "UpdateReport") -> None:
        """Add what another process did of the same updates; norms are those of the whole gradient in both."""
        self.losses = [mine + theirs for mine, theirs in zip(self.losses, other.losses, strict=True)]
        for name in ("ratio", "weight", "entropy", "kl_old", "kl", "advantages", "token_advantages", "apart"):
            getattr(self, name).update(getattr(other, name))
        for name, parts in other.extra.items():
            self.extra.setdefault(name, []).extend(parts)
        self.tokens += other.tokens
        self.nodes += other.nodes
        self.passes += other.passes


class Updater:
    """Cuts a step into mini-batches (one update each) and those into micro-batches that fit the token budget.

    Micro-batches are prefix trees, so a prompt that a group shares is computed once. Their gradients add up to the
    gradient of the mini-batch, because the objective divides by the totals of the mini-batch.
    """

    def __init__(self, learner: Learner, config: OnPolicyConfig, teacher: Speaks | None = None) -> None:
        self._learner, self._config, self._teacher = learner, config, teacher
        self.temperature = config.rollout.temperature
        """The temperature at which the responses were sampled, and are measured."""
        self._objective = REGISTRY[config.objective.name]
        self._params = self._objective.params(**parameters(config.objective, config.rollout.max_new_tokens))

    def advantages(self, rewards_B: Tensor, groups_B: Tensor, greedy_B: Tensor | None = None) -> Tensor:
        """Advantages [B] over whole groups; NaN if the reward is NaN. Distillation needs no reward: its advantages are 0, and nothing is
        excluded.
        """
        if isinstance(self._params, DistillParameters):
            return torch.zeros_like(rewards_B)
        return self._objective.advantages(rewards_B, groups_B, self._params, greedy_B)

    def run(
        self,
        trajectories: Sequence[Trajectory],
        advantages_B: Tensor,
        progress: Callable[[int, int], None] = lambda done, total: None,
        check: Callable[[], None] | None = None,
        learned_B: Sequence[Learned] | None = None,
    ) -> UpdateReport:
        """All updates of one step. Raises NotFinite before a bad gradient reaches the weights.

        `check` is called before every micro-batch. If it raises StopRequested, none of the step's updates has happened:
        weights and moments are as before. A step of several updates keeps a copy of them for that. `learned_B` says how well the
        responses are learned, for weights by it.
        """
        step = _Step(
            self._learner, self._config, trajectories, advantages_B, self._teacher, self.temperature, learned_B
        )
        report = UpdateReport(scaled=set() if learned_B is not None else None)
        minibatches = step.minibatches()
        done, total = 0, len(minibatches) * self._config.optim.epochs_per_step
        if check is not None and total > 1:
            self._learner.mark()
        try:
            step.record_old([row for rows in minibatches[1:] for row in rows], check)
            for epoch in range(self._config.optim.epochs_per_step):
                for rows in minibatches:
                    self._update(step, rows, report, epoch == 0, check)
                    done += 1
                    progress(done, total)
        except NotFinite as error:
            error.updates = done - report.skipped
            raise
        except StopRequested:
            if done:
                self._learner.take_back()
            raise
        return report

    def _update(
        self,
        step: "_Step",
        rows: list[int],
        report: UpdateReport,
        first_pass: bool,
        check: Callable[[], None] | None,
    ) -> None:
        share = self._learner.share
        self._learner.begin_update()
        batch = step.batch(rows)
        report.losses.append(0.0)
        for turn in step.turns(rows):
            if check is not None:
                check()
            mine = turn[share.rank] if share.rank < len(turn) else None
            refer = first_pass and any(step.wants_reference(found.places) for found in turn)
            if mine is None:
                step.idle(turn[0].places, refer)
                continue
            micro = mine.places
            step.fill_teacher(micro)  # before the pass, because a teacher may be the model itself with other weights
            scored = step.score(micro)
            if not all(part.logp_T.isfinite().all() for part in scored):
                raise NotFinite("a log-probability", micro)  # the loss may hide it: without an advantage it is 0
            step.fill_old(micro, scored)
            step.weigh(micro, scored, report)
            if refer:
                step.fill_reference(micro, report.kl, scored)
            result = self._objective.loss(step.micro(batch, rows, micro, scored), self._params)
            if not torch.isfinite(result.loss):
                raise NotFinite("the loss", micro)
            if result.loss.requires_grad:
                result.loss.backward()
            step.note(report, mine, scored, result)
        norm = self._learner.clip(self._config.optim.grad_clip)
        if not math.isfinite(norm):
            raise NotFinite("the norm of the gradient", rows)
        if step.moves(rows):
            self._learner.end_update()
        else:  # without a gradient, the optimiser's momentum and decay would still move the weights
            report.skipped += 1
        report.grad_norms.append(norm)


class _Step:
    """The padded tensors of one step. Row b is trajectory b; excluded rows are never computed.

    T are the policy's tokens of a trajectory, end to end: what others wrote between them is read and is in no tensor.
    """

    def __init__(
        self,
        learner: Learner,
        config: OnPolicyConfig,
        trajectories: Sequence[Trajectory],
        advantages_B: Tensor,
        teacher: Speaks | None,
        temperature: float,
        learned_B: Sequence[Learned] | None = None,
    ) -> None:
        self._learner, self._config, self._trajectories, self._teacher = learner, config, trajectories, teacher
        self._temperature = temperature
        self._advantages_B = advantages_B.clone()
        self._learned_B, self._weighed = learned_B, set[int]()
        mode = config.ratio_mode
        self._rows = [Marked.of(trajectory, sampled=mode == "scaffolded") for trajectory in trajectories]
        self._width = max(len(row.places) for row in self._rows)
        self._groups_B = torch.tensor([trajectory.plan.group for trajectory in trajectories])
        self._mask_BT = self.pad([torch.ones(len(row.places)) for row in self._rows])
        self._group_tokens_B, self._share_B = self._tokens_of_groups()
        self._roll_BT = self.pad([torch.tensor(trajectory.logprobs) for trajectory in trajectories])
        self._old_BT = torch.zeros_like(self._roll_BT)
        self._ref_BT = torch.zeros_like(self._roll_BT)
        self._teacher_BT = torch.zeros_like(self._roll_BT) if teacher else None
        self._taught: set[int] = set()
        self._kl_beta = getattr(config.objective, "kl_beta", 0.0)
        # In both cases the sampler's log-probabilities are pi_old: on the scaffolded prompt, or because the objective says so.
        recorded = mode == "corrected" or sampler_is_old(config.objective)
        self._known = set(range(len(trajectories))) if recorded else set()
        self._recorded = recorded
        self._alike = {
            b for b, t in enumerate(trajectories) if config.rollout.top_p == 1 and (mode == "scaffolded" or not t.view)
        }
        if recorded:
            self._old_BT.copy_(self._roll_BT)
        self._kl_rows = {b for b in range(len(trajectories)) if self._wants_reference(b)}

    def minibatches(self) -> list[list[int]]:
        """Rows of each update, groups in order, without excluded responses and without empty updates."""
        count = len(self._trajectories)
        size = self._config.optim.minibatch_size or count
        # The last one is smaller if dynamic sampling has left groups out, or if judgements were added to the step.
        cuts = [list(range(start, min(start + size, count))) for start in range(0, count, size)]
        kept = [[b for b in cut if not math.isnan(float(self._advantages_B[b]))] for cut in cuts]
        return [rows for rows in kept if rows]

    def turns(self, rows: list[int]) -> list[list[Pack]]:
        """One micro-batch for each process and turn; rows without a gradient are apart, because they need no backward pass.

        The processes that hold the model together make the same turns, and each takes its own micro-batch of a turn.
        """
        moving = [b for b in rows if self._moves(b)]
        still = [b for b in rows if not self._moves(b)]
        return [*self._dealt(self._packed(moving)), *self._dealt(self._packed(still))]

    def _dealt(self, packs: list[Pack]) -> list[list[Pack]]:
        ranks = self._learner.share.ranks
        return [packs[start : start + ranks] for start in range(0, len(packs), ranks)]

    def idle(self, rows: list[int], refer: bool) -> None:
        """Make the passes that the other processes wait for, in a turn that has no micro-batch for this process; nothing of it counts."""
        shortest = [min((self._rows[b] for b in rows), key=lambda row: len(row.read))]
        temperature = self._temperature
        with torch.set_grad_enabled(self._moves(rows[0])):
            (part,) = self._learner.measure(shortest, temperature)
        if refer:
            with torch.no_grad():
                self._learner.measure(shortest, temperature, untrained=True)
        if part.logp_T.requires_grad:
            (part.logp_T.sum() * 0.0).backward()

    def score(self, rows: list[int]) -> list[ResponseLogps]:
        with torch.set_grad_enabled(self._moves(rows[0])):
            return self._learner.measure([self._rows[b] for b in rows], self._temperature)

    @torch.no_grad()
    def record_old(self, rows: list[int], check: Callable[[], None] | None) -> None:
        """Compute pi_old of responses that an earlier update of the step would otherwise have changed."""
        unknown = [b for b in rows if b not in self._known]
        share = self._learner.share
        for turn in self._dealt(self._packed(unknown)):
            if check is not None:
                check()
            # A process without a micro-batch repeats the first one, because the passes of the others need it.
            mine = turn[share.rank if share.rank < len(turn) else 0]
            parts = self._learner.measure([self._rows[b] for b in mine.places], self._temperature)
            if share.rank < len(turn):
                self.fill_old(mine.places, parts)
        if unknown:
            # A later micro-batch may give a response to another process than the one that scored it here.
            self._old_BT[unknown] = share.add_up(self._old_BT[unknown])
            self._known.update(unknown)

    def fill_old(self, rows: list[int], scored: list[ResponseLogps]) -> None:
        """Before the first update the policy is pi_old, so no second pass is needed."""
        for b, part in zip(rows, scored, strict=True):
            if b not in self._known:
                self._old_BT[b, : len(part.logp_T)] = part.logp_T.detach()
                self._known.add(b)

    def fill_teacher(self, rows: list[int]) -> None:
        """The teacher's log-probabilities, measured once for each response of the step."""
        unknown = [b for b in rows if b not in self._taught]
        if self._teacher is None or self._teacher_BT is None or not unknown:
            return
        keys = [self._trajectories[b].plan.example_key for b in unknown]
        parts = self._teacher.measure([self._rows[b] for b in unknown], self._temperature, keys)
        for b, logp_T in zip(unknown, parts, strict=True):
            self._teacher_BT[b, : len(logp_T)] = logp_T
            self._taught.add(b)

    def weigh(self, rows: list[int], scored: list[ResponseLogps], report: UpdateReport) -> None:
        """WPSM: lower the advantage of a response that is well learned, by the policy's entropy when it first trains on it."""
        wpsm = self._config.well_learned
        if wpsm is None or self._learned_B is None or report.scaled is None:
            return
        for b, part in zip(rows, scored, strict=True):
            if b in self._weighed or not len(part.entropy_T):
                continue
            self._weighed.add(b)
            entropy, advantage = float(part.entropy_T.detach().mean()), float(self._advantages_B[b])
            found = self._learned_B[b]
            (weight,) = wpsm_weights(found.group, [entropy], [advantage], wpsm.tau, wpsm.eta, wpsm.alpha, found.before)
            if weight != 1.0:
                self._advantages_B[b] *= weight
                report.scaled.add(b)
                report.advantages[b] = float(self._advantages_B[b])

    def wants_reference(self, rows: list[int]) -> bool:
        return any(b in self._kl_rows for b in rows)

    @torch.no_grad()
    def fill_reference(self, rows: list[int], kl: dict[int, Tensor], scored: list[ResponseLogps]) -> None:
        """Log-probabilities of the untrained model, and the k3 estimate of the distance from it."""
        wanted = [(b, part) for b, part in zip(rows, scored, strict=True) if b in self._kl_rows]
        # Asked for because of another process's micro-batch: its pass needs this one; the numbers are not needed.
        asked = [self._rows[b] for b, _ in wanted] or [self._rows[rows[0]]]
        reference = self._learner.measure(asked, self._temperature, untrained=True)
        for (b, part), ref in zip(wanted, reference, strict=bool(wanted)):
            self._ref_BT[b, : len(ref.logp_T)] = ref.logp_T
            kl[b] = _k3(part.logp_T.detach(), ref.logp_T)

    def _tokens_of_groups(self) -> tuple[Tensor, Tensor]:
        """[B] each: the tokens of all included responses to the prompt of each response, also of those in other mini-batches; and the share
        of each response among them, 1 / their number.
        """
        included_B = (~torch.isnan(self._advantages_B)).float()
        numbers, group_B = torch.unique(self._groups_B, return_inverse=True)

        def sums_B(values_B: Tensor) -> Tensor:
            return torch.zeros(len(numbers)).index_add_(0, group_B, values_B)[group_B]

        return sums_B(self._mask_BT.sum(-1) * included_B), included_B / sums_B(included_B).clamp(min=1.0)

    def batch(self, rows: list[int]) -> ObjectiveBatch:
        """The whole mini-batch, for its totals; the tokens of groups are those of the step. A group that a mini-batch has in part counts as
        that part of a prompt, so that a mean over prompts weighs all responses alike.
        """
        index = torch.tensor(rows)
        return ObjectiveBatch(
            logp_BT=self._roll_BT[index],
            mask_BT=self._mask_BT[index],
            advantages_B=self._advantages_B[index],
            groups_B=self._groups_B[index],
            group_tokens_B=self._group_tokens_B[index],
            total_groups=float(self._share_B[index].sum()),
            logp_old_BT=self._old_BT[index],
            logp_roll_BT=self._roll_BT[index],
        )

    def micro(
        self, batch: ObjectiveBatch, rows: list[int], micro: list[int], scored: list[ResponseLogps]
    ) -> ObjectiveBatch:
        """Part of a mini-batch, with the totals of the whole and what has been filled in so far."""
        part = batch.rows(torch.tensor([rows.index(b) for b in micro]), self.pad([part.logp_T for part in scored]))
        teacher_BT = None if self._teacher_BT is None else self._teacher_BT[micro]
        return replace(
            part,
            advantages_B=self._advantages_B[micro],
            logp_old_BT=self._old_BT[micro],
            logp_ref_BT=self._ref_BT[micro],
            logp_teacher_BT=teacher_BT,
        )

    def pad(self, parts: Sequence[Tensor]) -> Tensor:
        """[len(parts), T], zeros on the right."""
        return torch.stack([torch.nn.functional.pad(part, (0, self._width - len(part))) for part in parts])

    def note(self, report: UpdateReport, micro: Pack, scored: list[ResponseLogps], result: ObjectiveResult) -> None:
        """Note the measures of a pass. Later passes over the same response overwrite earlier ones, except for the entropy."""
        report.losses[-1] += float(result.loss.detach())
        report.nodes += micro.nodes
        report.passes += 1
        assert result.ratio is not None and result.weight is not None  # noqa: S101 - policy objectives say both
        for row, (b, part) in enumerate(zip(micro.places, scored, strict=True)):
            length = len(part.logp_T)
            report.ratio[b] = result.ratio[row, :length]
            report.weight[b] = result.weight[row, :length]
            report.entropy.setdefault(b, part.entropy_T.detach())
            report.kl_old[b] = _k3(part.logp_T.detach(), self._old_BT[b, :length])
            if b in self._alike and b not in report.apart and not (self._recorded and report.grad_norms):
                before_T = part.logp_T.detach() if self._recorded else self._old_BT[b, :length]
                report.apart[b] = before_T - self._roll_BT[b, :length]
            report.tokens += len(self._rows[b].read)
            if result.advantages is not None:
                report.token_advantages[b] = result.advantages[row, :length]
                report.advantages[b] = float(report.token_advantages[b].mean())
        self._note_extra(report, {name: float(value) for name, value in result.diagnostics.items()})

    def _note_extra(self, report: UpdateReport, found: dict[str, float]) -> None:
        """Note what the objective reports besides the ratio; a mean over no tokens (NaN) is left out."""
        tokens, sequences = found["tokens"], found["sequences"]
        weights = {"pop_share": tokens, "penalty": tokens, "kl_teacher": tokens, "log_ratio": sequences}
        if mismatch_weighted(self._config.objective):
            kept = tokens * (1.0 - found["masked_share"])
            for name in ("mismatch", "mismatch_kl", "mismatch_far"):
                weights |= {f"{name}_raw": tokens, f"{name}_masked": kept}
        for name, weight in weights.items():
            if name in found and not math.isnan(found[name]):
                report.extra.setdefault(name, []).append((found[name], weight))

    def _packed(self, rows: list[int]) -> list[Pack]:
        # The last token of the policy is predicted and never read, so it takes no room.
        packs = pack([self._rows[b].read for b in rows], self._config.optim.micro_batch_tokens)
        return [Pack([rows[place] for place in found.places], found.nodes) for found in packs]

    def moves(self, rows: list[int]) -> bool:
        """Whether any of these responses has a gradient."""
        return any(self._moves(b) for b in rows)

    def _moves(self, b: int) -> bool:
        return self._pulls or float(self._advantages_B[b]) != 0.0

    @property
    def _pulls(self) -> bool:
        """Whether there is a gradient even if the advantage is 0: from a penalty, a regression or a teacher."""
        objective = self._config.objective
        penalty = self._kl_beta > 0 or getattr(objective, "tau", 0.0) > 0
        return penalty or isinstance(objective, OaplParameters | DistillParameters)

    def _wants_reference(self, b: int) -> bool:
        """Every response if the KL is in the loss; else, if the untrained model is there, one group a step, which is enough for a curve."""
        first_group = int(self._groups_B[0])
        return self._kl_beta > 0 or (self._learner.refers and int(self._groups_B[b]) == first_group)


def _k3(logp_T: Tensor, other_T: Tensor) -> Tensor:
    """Estimate of KL(pi || other) at tokens drawn from pi: exp(d) - d - 1 with d = log other - log pi; never negative."""
    difference = other_T - logp_T
    return difference.exp() - difference - 1.0
