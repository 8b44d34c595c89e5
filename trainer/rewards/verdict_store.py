"""The server's verdict store, for a judge whose weights the run has. A verdict that is stored is never asked for again."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from time import monotonic, sleep

import httpx
from pydantic import ValidationError

from trainer.contracts import KnownVerdicts, OwnVerdict, OwnVerdicts
from trainer.judges.budget import Budget
from trainer.judges.engine import Outcome

from .judges import VerdictsAway
from .parts import RewardAnswer

PATIENCE_S = 60.0  # longer than a server takes to restart
AGAIN_S = 1.0
AT_ONCE = 200
_TIMEOUT = httpx.Timeout(60.0, connect=5.0)


@dataclass
class ServerStore:
    """`judge` is the judge's name in the config. Verdicts that could not be sent are sent with the next ones."""

    url: str
    token: str = field(repr=False)
    judge: str
    _left: list[OwnVerdict] = field(default_factory=list)
    _told: KnownVerdicts | None = None

    def get(self, keys: Sequence[str]) -> Mapping[str, RewardAnswer]:
        """Raises VerdictsAway if the server does not answer."""
        found: dict[str, RewardAnswer] = {}
        for start in range(0, len(keys), AT_ONCE):
            for told in self._posted(keys=tuple(keys[start : start + AT_ONCE])).answers:
                found[told.key] = RewardAnswer({}, told.parsed, told.raw, told.problem)
        return found

    def put(self, outcomes: Iterable[Outcome]) -> None:
        """Raises VerdictsAway if the server does not answer; nothing is lost then."""
        self._left += map(own_verdict, (outcome for outcome in outcomes if outcome.state != "failed"))
        while some := tuple(self._left[:AT_ONCE]):
            self._posted(verdicts=some)
            del self._left[: len(some)]

    def limit(self, budget: Budget) -> None:
        """The limit that people have set by now. What other processes of this run, or its earlier attempts, have used counts too."""
        if told := self._told:
            budget.tokens = told.budget_tokens
            budget.money = None if told.budget_money is None else Decimal(told.budget_money)
            budget.spent_tokens = max(budget.spent_tokens, told.tokens)
            budget.spent_money = max(budget.spent_money, Decimal(told.money))

    def _posted(self, keys: tuple[str, ...] = (), verdicts: tuple[OwnVerdict, ...] = ()) -> KnownVerdicts:
        body = OwnVerdicts(judge=self.judge, keys=keys, verdicts=verdicts).model_dump_json().encode()
        until = monotonic() + PATIENCE_S
        while True:
            try:
                self._told = self._answer(body)
                return self._told
            except (httpx.HTTPError, ValidationError) as error:
                if monotonic() > until:
                    raise VerdictsAway(
                        f"the server of the run does not answer: {type(error).__name__}: {error}"
                    ) from None
            sleep(AGAIN_S)

    def _answer(self, body: bytes) -> KnownVerdicts:
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        with httpx.Client(headers=headers, timeout=_TIMEOUT, trust_env=False) as client:
            response = client.post(self.url, content=body)
        if 400 <= response.status_code < 500 and response.status_code not in (408, 429):
            raise VerdictsAway(
                f"the server does not take the verdicts (HTTP {response.status_code}): {response.text[:300]}"
            )
        response.raise_for_status()
        return KnownVerdicts.model_validate_json(response.content)


def own_verdict(outcome: Outcome) -> OwnVerdict:
    """The verdict in the form for the verdict store."""
    call, reply = outcome.call, outcome.reply
    used = (
        {
            "prompt_tokens": reply.prompt_tokens,
            "cached_tokens": reply.cached_tokens,
            "completion_tokens": reply.completion_tokens,
            "latency_s": reply.latency_s,
            "attempts": reply.attempts,
        }
        if reply
        else {}
    )
    return OwnVerdict(
        key=call.key,
        record=call.record,
        subject=call.subject,
        state=outcome.state,
        parsed=outcome.parsed,
        raw=outcome.raw,
        problem=outcome.problem,
        **used,
    )
