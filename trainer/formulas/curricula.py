"""Formulas that choose what to train on next: curricula, budgets, selection. Parameters are the inputs by name."""

from typing import Annotated

from pydantic import Field

from trainer.curriculum import ahrl as hints
from trainer.curriculum import budget as budgets
from trainer.curriculum import toggle
from trainer.curriculum.wpsm import wpsm_weights
from trainer.metrics import policy
from trainer.scheduling import too_old
from trainer.selection import k_center, sliding_perplexity

from .base import Count, InputInvalid, NotNegative, Positive, Share, Undefined, same_length, same_width

Lengths = Annotated[list[Count], Field(min_length=1)]
Rewards = Annotated[list[float | None], Field(min_length=1)]
Numbers = Annotated[list[float], Field(min_length=1)]
Rollouts = Annotated[int, Field(ge=0, le=1_000_000)]
Drawn = Annotated[int, Field(ge=0, le=100_000)]  # binomials of larger numbers take seconds


def toggle_budget(lengths: Lengths, rewards: Rewards, rho: Share) -> float:
    """Tokens a prompt's responses may have: the linear rho-quantile of the lengths of its correct ones (Toggle)."""
    same_length(lengths=lengths, rewards=rewards)
    value = toggle.toggle_budget(lengths, rewards, rho)
    if value is None:
        raise Undefined("no response is correct (reward 1), so there is no budget")
    return value


def toggle_reward(
    rewards: Rewards, lengths: Lengths, budget: NotNegative | None, t: Count, m: Positive, lam: float
) -> list[float | None]:
    """Rewards of a group at iteration t: in budget phases 0 above the budget, if the mean reward is at least lam (Toggle)."""
    same_length(rewards=rewards, lengths=lengths)
    return toggle.toggle_rewards(rewards, lengths, budget, t, m, lam)


def wpsm(
    accuracy: Share,
    entropies: Annotated[list[NotNegative], Field(min_length=1)],
    advantages: Numbers,
    tau: Share,
    eta: NotNegative,
    alpha: Share,
    kept: Share | None = None,
) -> list[float]:
    """Weights of a group's responses: 1 - alpha for sure ones with positive advantage of a well-learned prompt."""
    same_length(entropies=entropies, advantages=advantages)
    return wpsm_weights(accuracy, entropies, advantages, tau, eta, alpha, kept)


def ahrl(p0: Share, gamma: NotNegative, t: Count, pass0: Share) -> float:
    """Share of the reference reasoning shown as a hint at iteration t: p0 exp(-gamma t pass0) (AHRL)."""
    return hints.hint_share(p0, gamma, t, pass0)


def budget(
    pass_rates: Annotated[list[Share], Field(min_length=1)],
    counts: list[Count],
    total: Rollouts,
    low: Rollouts,
    high: Rollouts,
) -> list[int]:
    """Rollouts of each prompt: low for all, then one at a time to the prompt with the largest p (1 - p) / ((n + 1) (n + 2))."""
    same_length(pass_rates=pass_rates, counts=counts)
    return budgets.allocate(pass_rates, counts, total, low, high)


def kcenter(
    embeddings: Annotated[list[Numbers], Field(min_length=1)],
    ppl: Annotated[list[NotNegative], Field(min_length=1)],
    k: Positive,
) -> list[int]:
    """Indices of k examples that cover the rest: largest ppl x cosine distance to those picked before, greedily."""
    same_length(embeddings=embeddings, ppl=ppl)
    same_width("embeddings", embeddings)
    return k_center(embeddings, ppl, k)


def sliding_ppl(logp: list[Annotated[float, Field(le=0)]], window: Positive) -> float:
    """Largest mean negative log-likelihood of `window` tokens in a row; a shorter text is one window."""
    value = sliding_perplexity(logp, window)
    if value is None:
        raise Undefined("the text has no token")
    return value


def pass_at_k(n: Drawn, c: Drawn, k: Annotated[int, Field(ge=1, le=100_000)]) -> float:
    """Chance that k of n responses, c of them correct, hold a correct one: 1 - C(n - c, k) / C(n, k)."""
    if c > n:
        raise InputInvalid("c", f"{c} correct of {n} responses")
    if k > n:
        raise Undefined(f"{n} responses are too few to draw {k}")
    return policy.pass_at_k(n, c, k)


def stale_keep(versions: list[list[Count]], current: Count, tau: Count) -> list[bool]:
    """Whether each sample is kept: current - its oldest version is at most tau; one without a token is kept."""
    for i, row in enumerate(versions):
        for j, version in enumerate(row):
            if version > current:
                raise InputInvalid(f"versions[{i}][{j}]", f"{version} is newer than current, which is {current}")
    return [not (row and too_old(min(row), current, tau)) for row in versions]
