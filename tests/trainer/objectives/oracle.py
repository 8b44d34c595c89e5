"""Every objective once more, in NumPy float64, written token by token from the papers' definitions with explicit loops.

It shares nothing with the code under test, and is written plainly instead of fast. A case is the calculator's record; `loss(name, case)`
gives the value that is minimised.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

Case = dict[str, Any]

DEFAULTS: dict[str, dict[str, Any]] = {
    "grpo": {"advantage": "group_std", "aggregation": "sequence", "eps_low": 0.2, "eps_high": 0.2},
    "dr_grpo": {"advantage": "centred", "aggregation": "constant", "eps_low": 0.2, "eps_high": 0.2},
    "dapo": {"advantage": "group_std", "aggregation": "token", "eps_low": 0.2, "eps_high": 0.28},
    "gspo": {"advantage": "group_std", "aggregation": "sequence", "eps_low": 3e-4, "eps_high": 4e-4},
    "icepop": {
        "advantage": "group_std",
        "aggregation": "sequence",
        "eps_low": 0.2,
        "eps_high": 0.28,
        "pop_mode": "mask",
        "level": "token",
    },
    "misc": {
        "advantage": "group_std",
        "aggregation": "sequence",
        "eps_low": 3e-4,
        "eps_high": 4e-4,
        "pop_mode": "weight",
    },
    "double_sided": {"advantage": "centred", "aggregation": "token", "eps_low": 0.2, "eps_high": 0.28},
    "kimi": {"advantage": "centred", "alpha": 0.5, "beta": 2.0, "tau": 1e-3},
    "oapl": {"beta1": 1.0, "beta2": 1e-3},
    "distill": {"aggregation": "sequence", "eps_low": 0.2, "eps_high": 0.28, "pop_mode": "mask"},
    "sft": {"aggregation": "token"},
}


def advantages(case: Case, how: str) -> list[float]:
    """The advantage of every response; nan if the reward is missing."""
    rewards = [math.nan if r is None else r for r in case["rewards"]]
    out = []
    for i, r in enumerate(rewards):
        group = [q for q, g in zip(rewards, case["groups"], strict=True) if g == case["groups"][i] and q == q]
        if r != r:
            out.append(math.nan)
        elif how == "leave_one_out":
            others = [q for j, q in enumerate(rewards) if j != i and case["groups"][j] == case["groups"][i] and q == q]
            out.append(r - sum(others) / len(others) if others else math.nan)
        elif how == "centred":
            out.append(r - np.mean(group))
        elif how == "batch":
            out.append((r - np.mean(group)) / np.std([q for q in rewards if q == q]))
        else:
            flat = max(group) - min(group) < 1e-12
            out.append(0.0 if flat else (r - np.mean(group)) / np.std(group))
    return out


def clipped(rho: float, a: float, low: float, high: float) -> float:
    return min(rho * a, min(max(rho, 1 - low), 1 + high) * a)


def popped(k: float, p: Case) -> float:
    high = p.get("pop_high", 2.0)
    low = p.get("pop_low", 1 / high)
    if k < low or k > high:
        return 0.0
    return k if p["pop_mode"] == "weight" else 1.0


def positions(case: Case, i: int) -> list[int]:
    return [t for t, m in enumerate(case["mask"][i]) if m == 1]


def together(per_token: list[list[float]], case: Case, p: Case) -> float:
    """`per_token` has a row for each included response, with an entry for each generated token."""
    if p["aggregation"] == "sequence":
        return float(np.mean([np.mean(row) if row else 0.0 for row in per_token]))
    if p["aggregation"] == "token":
        return sum(map(sum, per_token)) / sum(map(len, per_token))
    return sum(map(sum, per_token)) / (len(per_token) * p["max_tokens"])


def gain(name: str, case: Case, p: Case, i: int, t: int, a: float) -> float:
    """The part of token t of response i in the objective that is maximised."""
    lp, tokens = case["logp"][i], positions(case, i)

    def mean_log(x: str, y: str) -> float:
        return float(np.mean([case[x][i][u] - case[y][i][u] for u in tokens]))

    if name == "sft":
        return lp[t]
    if name == "double_sided":
        r = math.exp(case["const"][i][t] - case["logp_roll"][i][t])
        return r * a * lp[t] if 1 - p["eps_low"] < r < 1 + p["eps_high"] else 0.0
    if name == "gspo" or name == "misc" or p.get("level") == "sequence":
        rho = math.exp(mean_log("logp", "logp_old"))
    else:
        rho = math.exp(lp[t] - case["logp_old"][i][t])
    if name == "distill":
        a = case["logp_teacher"][i][t] - case["const"][i][t]
    value = clipped(rho, a, p["eps_low"], p["eps_high"])
    if p.get("dual_clip") and a < 0:
        value = max(value, p["dual_clip"] * a)
    if name == "misc":
        ks = [math.exp(case["logp_old"][i][u] - case["logp_roll"][i][u]) for u in tokens]
        value *= float(np.mean([popped(k, p) for k in ks]))
    elif name in ("icepop", "distill"):
        if p.get("level") == "sequence":
            k = math.exp(mean_log("logp_old", "logp_roll"))
        else:
            k = math.exp(case["logp_old"][i][t] - case["logp_roll"][i][t])
        value *= popped(k, p)
    if p.get("decoupled"):
        weight = math.exp(case["logp_old"][i][t] - case["logp_roll"][i][t])
        value *= min(weight, p.get("weight_cap", 2.0))
    if p.get("kl_beta"):
        d = case["logp_ref"][i][t] - lp[t]
        value -= p["kl_beta"] * (math.exp(d) - d - 1)
    return value


def loss(name: str, case: Case) -> float:
    """`case["const"]`: the value that stop-gradients see instead of logp. If it is absent, they see logp itself."""
    p = DEFAULTS[name] | case.get("params", {})
    case = {"const": case["logp"]} | case
    count = len(case["logp"])
    if name == "kimi":
        return kimi(case, p)
    if name == "oapl":
        return oapl(case, p)
    a = advantages(case, p["advantage"]) if "advantage" in p else [0.0] * count
    rows = [[gain(name, case, p, i, t, a[i]) for t in positions(case, i)] for i in range(count) if not math.isnan(a[i])]
    return -together(rows, case, p)


def kimi(case: Case, p: Case) -> float:
    a = advantages(case, p["advantage"])
    per_prompt = []
    for g in sorted(set(case["groups"])):
        rows = [i for i in range(len(a)) if case["groups"][i] == g and not math.isnan(a[i])]
        if not rows:
            continue
        total, n = 0.0, 0
        for i in rows:
            for t in positions(case, i):
                log_rho = case["logp"][i][t] - case["logp_roll"][i][t]
                rho = min(max(math.exp(log_rho), p["alpha"]), p["beta"])
                total += rho * a[i] - p["tau"] * log_rho**2
                n += 1
        per_prompt.append(total / max(n, 1))
    return -float(np.mean(per_prompt))


def oapl(case: Case, p: Case) -> float:
    terms = []
    for i, r in enumerate(case["rewards"]):
        if r is None:
            continue
        group = [
            q for q, g in zip(case["rewards"], case["groups"], strict=True) if g == case["groups"][i] and q is not None
        ]
        v = p["beta1"] * math.log(np.mean([math.exp(q / p["beta1"]) for q in group]))
        log_ratio = sum(case["logp"][i][t] - case["logp_roll"][i][t] for t in positions(case, i))
        terms.append((p["beta2"] * log_ratio - (r - v)) ** 2)
    return float(np.mean(terms))


def dpo(case: Case, beta: float = 0.1, sft_weight: float = 0.2) -> float:
    def total(side: str, name: str, i: int) -> float:
        return sum(case[side][name][i][t] for t in positions(case[side], i))

    out = []
    for i in range(len(case["chosen"]["logp"])):
        inner = (total("chosen", "logp", i) - total("chosen", "logp_ref", i)) - (
            total("rejected", "logp", i) - total("rejected", "logp_ref", i)
        )
        n = len(positions(case["chosen"], i))
        out.append(math.log(1 + math.exp(-beta * inner)) - sft_weight * total("chosen", "logp", i) / max(n, 1))
    return float(np.mean(out))


def slope(function: Callable[[Case], float], case: Case, i: int, t: int, h: float = 1e-6) -> float:
    """The central difference of `function` in logp[i][t]. Stop-gradients keep the unmoved values."""
    still = {"const": [list(row) for row in case["logp"]]}

    def moved(step: float) -> float:
        rows = [list(row) for row in case["logp"]]
        rows[i][t] += step
        return function({**case, "logp": rows, **still})

    return (moved(h) - moved(-h)) / (2 * h)
