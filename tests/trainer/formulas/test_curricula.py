"""Formulas of curricula, budgets and selection, with inputs by name."""

import math

import pytest

from .test_command import GOOD, problem, value


def test_toggle() -> None:
    assert value("toggle_budget", lengths=[10, 20, 30, 99], rewards=[1, 1, 1, 0], rho=0.75) == 25
    assert value("toggle_budget", lengths=[10, 20], rewards=[0, 0], rho=0.5) is None
    group = {"rewards": [1, 1, 0], "lengths": [10, 30, 10], "m": 2, "lam": 0.5}
    assert value("toggle_reward", **group, budget=20, t=0) == [1, 0, 0]
    assert value("toggle_reward", **group, budget=20, t=2) == [1, 1, 0]
    assert value("toggle_reward", **group, budget=None, t=0) == [1, 1, 0]
    assert value("toggle_reward", rewards=[1, None], lengths=[30, 30], budget=20, t=0, m=2, lam=0.5) == [0, None]
    assert problem("toggle_reward", {**group, "budget": 20, "t": 0, "m": 0}).startswith("m: ")
    assert problem("toggle_reward", {**group, "budget": 20, "t": 0, "lengths": [1]}).startswith("lengths: has 1")
    assert problem("toggle_budget", {"lengths": [1], "rewards": [1], "rho": 75}).startswith("rho: ")


def test_wpsm() -> None:
    group = {"entropies": [0.1, 0.1, 2], "advantages": [1, -1, 1], "tau": 0.5, "eta": 1, "alpha": 0.75}
    assert value("wpsm", accuracy=0.75, **group) == [0.25, 1, 1]
    assert value("wpsm", accuracy=0.5, **group) == [1, 1, 1]
    assert value("wpsm", accuracy=0.75, **group, kept=0.5) == [1, 1, 1]
    assert problem("wpsm", {"accuracy": 0.75, **group, "alpha": 1.5}).startswith("alpha: ")


def test_ahrl() -> None:
    assert value("ahrl", p0=0.6, gamma=0.01, t=100, pass0=0.5) == pytest.approx(0.6 * math.exp(-0.5))
    assert value("ahrl", p0=0.6, gamma=0.01, t=100, pass0=0) == 0.6


def test_budget() -> None:
    assert value("budget", pass_rates=[0.5, 0.9, 1], counts=[0, 0, 0], total=6, low=1, high=4) == [3, 2, 1]
    bounds = {"pass_rates": [0.5, 0.5], "counts": [0, 0], "low": 2, "high": 3}
    assert problem("budget", {**bounds, "total": 3}).startswith("total: 2 prompts")
    assert problem("budget", {**bounds, "total": 7}).startswith("total: 2 prompts")
    assert problem("budget", {**bounds, "total": 4, "high": 1}).startswith("high: 1 is below low")
    assert problem("budget", {**bounds, "total": 4, "counts": [0]}).startswith("counts: has 1")


def test_kcenter() -> None:
    record = {"embeddings": [[1, 0.1], [-1, 0], [1, 0], [0, 1]], "ppl": [1, 1, 3, 1.5], "k": 3}
    assert value("kcenter", **record) == [2, 1, 3]
    assert problem("kcenter", {**record, "k": 5}).startswith("k: 5 of 4")
    assert problem("kcenter", {**record, "ppl": [1]}).startswith("ppl: has 1")
    assert problem("kcenter", {**record, "embeddings": [[1, 0], [1], [1, 0], [0, 1]]}).startswith(
        "embeddings[1]: has 1"
    )
    assert problem("kcenter", {**record, "embeddings": [[0, 0]] * 4}).startswith("embeddings[0]: a zero vector")


def test_sliding_ppl() -> None:
    assert value("sliding_ppl", logp=[-1, -5, -1, -4, -4], window=2) == 4
    assert value("sliding_ppl", logp=[-1, -2], window=512) == 1.5
    assert value("sliding_ppl", logp=[], window=2) is None
    assert problem("sliding_ppl", {"logp": [-1, 0.5], "window": 2}).startswith("logp[1]: ")


def test_pass_at_k() -> None:
    assert value("pass_at_k", n=4, c=2, k=2) == pytest.approx(1 - 1 / 6)
    assert value("pass_at_k", n=4, c=0, k=4) == 0
    assert value("pass_at_k", n=4, c=1, k=4) == 1
    assert value("pass_at_k", n=3, c=1, k=4) is None
    assert value("pass_at_k", n=0, c=0, k=1) is None
    assert problem("pass_at_k", {"n": 3, "c": 4, "k": 1}).startswith("c: 4 correct of 3")
    assert problem("pass_at_k", {"n": 3, "c": 1, "k": 0}).startswith("k: ")


def test_stale_keep() -> None:
    versions = [[5, 4, 3], [2, 5], [5], []]
    assert value("stale_keep", versions=versions, current=5, tau=2) == [True, False, True, True]
    assert value("stale_keep", versions=versions, current=5, tau=3) == [True, True, True, True]
    assert value("stale_keep", versions=[], current=5, tau=0) == []
    assert problem("stale_keep", {"versions": [[1], [2, 6]], "current": 5, "tau": 1}).startswith(
        "versions[1][1]: 6 is newer"
    )


def test_a_group_without_a_response_is_no_group() -> None:
    for name, field in (("toggle_reward", "rewards"), ("toggle_budget", "lengths"), ("wpsm", "entropies")):
        assert problem(name, {**GOOD[name], field: []}).startswith(f"{field}: ")
