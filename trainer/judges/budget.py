"""The limit of what a run of calls may use. Calls that are already in flight cannot exceed it either."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from decimal import Decimal

from .chat import ChatReply, ChatRequest, EndpointProblem, Prices

OVERHEAD_TOKENS = 64  # of the chat template, and of each message's role


@dataclass(frozen=True)
class Hold:
    """The amount that is set aside for one call until it is known how much the call used."""

    tokens: int
    money: Decimal


class Budget:
    """A limit on tokens, on money, or on both, shared by all calls of a run. Tokens are those of prompt and reply.

    Before a call leaves, the most that it can use is set aside: one token for each byte of the prompt (no tokenizer makes more) and the
    longest reply. So all calls in flight together cannot exceed the limit. Near the limit fewer calls are in flight at once. If not even
    one more fits, `hold` raises; less than the most of one call is then left over.
    """

    def __init__(self, tokens: int | None = None, money: Decimal | None = None) -> None:
        self.tokens, self.money = tokens, money
        self.spent_tokens, self.spent_money = 0, Decimal(0)
        self._held_tokens, self._held_money = 0, Decimal(0)
        self._settled = asyncio.Condition()

    async def hold(self, request: ChatRequest, prices: Prices | None) -> Hold:
        """Waits as long as calls in flight may leave enough for this one.

        Raises EndpointProblem "budget" if they cannot, or if money is limited and no prices are known.
        """
        wanted = self._most(request, prices)
        async with self._settled:
            while not self._fits(wanted, self._held_tokens, self._held_money):
                if not self._fits(wanted, 0, Decimal(0)):
                    raise EndpointProblem("budget", self._used_up())
                await self._settled.wait()
            self._held_tokens += wanted.tokens
            self._held_money += wanted.money
        return wanted

    async def settle(self, hold: Hold, reply: ChatReply | None, prices: Prices | None, *, billed: bool = True) -> None:
        """Replaces the amount that was set aside by the amount that was used. Without counts of tokens, all of it counts as used.

        A call without an answer is not `billed` and has used nothing.
        """
        tokens, money = (hold.tokens, hold.money) if billed else (0, Decimal(0))
        if reply is not None and reply.prompt_tokens is not None and reply.completion_tokens is not None:
            tokens = reply.prompt_tokens + reply.completion_tokens
            money = prices.cost(reply.prompt_tokens, reply.completion_tokens) if prices else Decimal(0)
        async with self._settled:
            self._held_tokens -= hold.tokens
            self._held_money -= hold.money
            self.spent_tokens += tokens
            self.spent_money += money
            self._settled.notify_all()

    def _most(self, request: ChatRequest, prices: Prices | None) -> Hold:
        prompt = sum(len(message["content"].encode()) + OVERHEAD_TOKENS for message in request.messages)
        if self.money is not None and prices is None:
            raise EndpointProblem("budget", "Money is limited, but the endpoint has no prices. Enter them on its page.")
        reply = request.sampling.max_tokens
        return Hold(prompt + reply, prices.cost(prompt, reply) if prices else Decimal(0))

    def _fits(self, wanted: Hold, held_tokens: int, held_money: Decimal) -> bool:
        tokens = self.spent_tokens + held_tokens + wanted.tokens
        money = self.spent_money + held_money + wanted.money
        return (self.tokens is None or tokens <= self.tokens) and (self.money is None or money <= self.money)

    def _used_up(self) -> str:
        parts = []
        if self.tokens is not None:
            parts.append(f"{self.spent_tokens:,} of {self.tokens:,} tokens")
        if self.money is not None:
            parts.append(f"{self.spent_money:.4f} of {self.money:f} in money")
        return f"The budget is used up: {' and '.join(parts)} are spent, and the next call may need more than is left."


async def within(
    budget: Budget | None,
    request: ChatRequest,
    prices: Prices | None,
    ask: Callable[[ChatRequest], Awaitable[ChatReply]],
) -> ChatReply:
    """The reply of a local model, paid from the budget if there is one. A call without a reply is free.

    Raises EndpointProblem "budget", and all that `ask` raises.
    """
    if budget is None:
        return await ask(request)
    hold = await budget.hold(request, prices)
    reply = None
    try:
        reply = await ask(request)
    finally:
        await budget.settle(hold, reply, prices, billed=reply is not None)
    return reply
