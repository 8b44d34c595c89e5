"""The tokens of every outstanding response: joined from segments, and kept until the group is trained on."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from trainer.config.on_policy import Rollout
from trainer.inference.sampling import FinishReason, SampleRequest, SampleResult
from trainer.rollouts import PromptPlan, Reward, Trajectory
from trainer.rollouts.stored import read, stored_trajectory
from trainer.scheduling import SampleId, Start, Stretch
from trainer.seeding import derive_seed

from .feed import AttemptKey


@dataclass(frozen=True)
class PartialResponse:
    """The first tokens of a response, and which version sampled which of them."""

    tokens: tuple[int, ...] = ()
    logprobs: tuple[float, ...] = ()
    stretches: tuple[Stretch, ...] = ()

    def grown(self, result: SampleResult) -> "PartialResponse":
        """The response with the tokens of one more segment."""
        stretches, start, end = self.stretches, len(self.tokens), len(self.tokens) + len(result.tokens)
        if stretches and stretches[-1].version == result.version:
            start, stretches = stretches[-1].start, stretches[:-1]
        return PartialResponse(
            self.tokens + result.tokens,
            self.logprobs + result.logprobs,
            (*stretches, Stretch(result.version, start, end)),
        )


class OpenResponses:
    """Keeps the tokens of responses that are put off or finished; tokens of a lost attempt are dropped with it."""

    def __init__(
        self,
        rollout: Rollout,
        segment_tokens: int,
        plans_of: Callable[[int, int], Sequence[PromptPlan]],
        decode: Callable[[Sequence[int]], str],
    ) -> None:
        self._rollout, self._segment = rollout, segment_tokens
        self._plans_of, self._decode = plans_of, decode
        self._plans: dict[int, Sequence[PromptPlan]] = {}
        """The plans of each begun group, by its number and its size."""
        self._put_off: dict[SampleId, PartialResponse] = {}
        self._running: dict[AttemptKey, PartialResponse] = {}
        self._whole: dict[AttemptKey, Trajectory] = {}
        """Responses with their last token, not yet scored."""
        self._done: dict[SampleId, Trajectory] = {}

    def plan(self, sample: SampleId) -> PromptPlan:
        return self._plans[sample.group][sample.place]

    def begin(self, start: Start, size: int) -> None:
        """Continue from where the response was put off, or begin it. `size` is the number of responses of its group."""
        self._know(start.sample.group, size)
        self._running[AttemptKey(start.sample, start.attempt)] = (
            self._put_off.get(start.sample, PartialResponse()) if start.stretches else PartialResponse()
        )

    def request(self, key: AttemptKey) -> SampleRequest:
        """The request for the rest of a response, or for its next segment. A continued response draws from its own seed."""
        plan, had = self.plan(key.sample), self._running[key].tokens
        left = self._rollout.max_new_tokens - len(had)
        return SampleRequest(
            prompt_tokens=(*plan.sampled_prompt_tokens, *had),
            max_new_tokens=min(self._segment or left, left),
            temperature=self._rollout.temperature,
            top_p=self._rollout.top_p,
            stop=tuple(self._rollout.stop),
            seed=derive_seed(plan.seed, "from", len(had)) if had else plan.seed,
        )

    def add(self, key: AttemptKey, result: SampleResult) -> Trajectory | None:
        """Add a segment; returns the whole response if the segment was its last."""
        had = self._running.pop(key)
        part = had.grown(result)
        over = len(part.tokens) >= self._rollout.max_new_tokens
        if result.finish_reason != "stop" and not over:
            self._running[key] = part
            return None
        reason: FinishReason = "stop" if result.finish_reason == "stop" else "length"
        text = self._decode(part.tokens) if had.tokens else result.text
        whole = SampleResult(part.tokens, part.logprobs, text, reason, part.stretches[0].version)
        self._whole[key] = Trajectory.of(self.plan(key.sample), whole, versions=part.stretches)
        return self._whole[key]

    def whole(self, key: AttemptKey) -> Trajectory:
        """A whole response that waits for its reward."""
        return self._whole[key]

    def put_off(self, key: AttemptKey) -> tuple[Stretch, ...]:
        """Keep the tokens for later; returns their stretches."""
        part = self._put_off[key.sample] = self._running.pop(key)
        return part.stretches

    def lose(self, key: AttemptKey) -> None:
        """End this attempt without a result."""
        self._running.pop(key, None)
        self._whole.pop(key, None)

    def scored(self, key: AttemptKey, reward: Reward) -> tuple[Stretch, ...]:
        """Note that the response can be trained on; returns its stretches."""
        whole = self._whole.pop(key)
        self._put_off.pop(key.sample, None)
        self._done[key.sample] = replace(whole, reward=reward)
        return tuple(Stretch(*each) for each in whole.versions)

    def taken(self, number: int, places: Sequence[int], group: int) -> list[Trajectory]:
        """The responses of a group as the `group`-th of a batch. The group is then dropped, because it is trained on now."""
        rows = [self._done[SampleId(number, place)] for place in places]
        self.forget(number)
        return [replace(row, plan=replace(row.plan, group=group)) for row in rows]

    def forget(self, number: int) -> None:
        for place in range(len(self._plans.pop(number, ()))):
            self._done.pop(SampleId(number, place), None)
            self._put_off.pop(SampleId(number, place), None)

    def snapshot(self) -> tuple[dict[SampleId, Trajectory], dict[SampleId, PartialResponse]]:
        """The parts that `saved` writes; making them is cheap, because nothing in them ever changes."""
        return dict(self._done), dict(self._put_off)

    def load(self, state: dict[str, Any], sizes: Mapping[int, int]) -> None:
        """Restore. `sizes` are the numbers of responses of the outstanding groups. Saved responses of other groups, which were being
        dropped, are of no use.
        """
        for *numbers, tokens, logprobs, stretches in state["put_off"]:
            sample, found = SampleId(*numbers), tuple(Stretch(*stretch) for stretch in stretches)
            if sample.group in sizes:
                self._know(sample.group, sizes[sample.group])
                self._put_off[sample] = PartialResponse(tuple(tokens), tuple(logprobs), found)
        for row in state["done"]:
            sample = SampleId(*row["sample"])
            if sample.group in sizes:
                self._know(sample.group, sizes[sample.group])
                self._done[sample] = read(row, self.plan(sample))

    def _know(self, group: int, size: int) -> None:
        if group not in self._plans:
            self._plans[group] = self._plans_of(group, size)


def saved(done: dict[SampleId, Trajectory], put_off: dict[SampleId, PartialResponse]) -> dict[str, Any]:
    """A snapshot as JSON. Plans are left out, because they follow from the seed."""
    return {
        "done": [{"sample": list(sample)} | stored_trajectory(trajectory) for sample, trajectory in done.items()],
        "put_off": [
            [*sample, list(part.tokens), list(part.logprobs), [list(stretch) for stretch in part.stretches]]
            for sample, part in put_off.items()
        ],
    }
