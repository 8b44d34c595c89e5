"""Plain data describes how a run reaches the judges and services of its rewards. The command line or the server makes it; the process that
computes rewards opens it."""

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from trainer import reward_process
from trainer.config.errors import ConfigInvalid, FieldProblem
from trainer.config.rewards.parts import HttpPart, PythonPart, RewardModelPart, RewardPart
from trainer.contracts import JudgeGrant
from trainer.judges.budget import Budget
from trainer.judges.chat import Prices, Target
from trainer.judges.local import LocalTarget, wording
from trainer.judges.spec import BaseSpec, digest, resolve

from .functions import Function
from .gateway import Gateway, GatewayJudge
from .http_service import HttpService
from .judges import EngineJudge, Store
from .parts import RewardJudge, Scalar, Service, Services, spec_problem
from .relay import Relay, RelayedService
from .verdict_store import ServerStore

LOCAL_JUDGE = (sys.executable, "-m", "trainer", "judge-local")


class AccessInvalid(ValueError):
    """A judge or a service that the rewards name is not there, or cannot do what is asked; the message says what and where."""


@dataclass(frozen=True)
class JudgeAccess:
    """A judge version: its questions, the digest for the keys of its verdicts, and the model that answers.

    The `store`, if there is one, is asked before any call. A `target` that is a judge itself, as in constructed tasks, answers in this
    process.
    """

    spec: BaseSpec
    key: str
    target: Target | LocalTarget | Gateway | RewardJudge
    store: Store | None = None

    def open(self, budget: Budget | None) -> RewardJudge:
        """`budget` counts here if the calls are made here; a server has its own."""
        if isinstance(self.target, Gateway):
            return GatewayJudge(self.spec, self.key, self.target)
        if isinstance(self.target, Target | LocalTarget):
            return EngineJudge(self.spec, self.key, self.target, budget, self.store)
        return self.target


@dataclass(frozen=True)
class Access:
    """Judges and reward services, by the names that the config uses. It holds keys, so it is never written to disk.

    This process posts to a service, or the server of the run does.
    """

    judges: Mapping[str, JudgeAccess] = field(default_factory=dict)
    endpoints: Mapping[str, Target | Relay] = field(default_factory=dict)

    def problems(
        self, parts: Sequence[RewardPart], asking: Mapping[str, RewardPart] | None = None
    ) -> Iterator[FieldProblem]:
        """Problems of parts that cannot have what they ask for, each at its field. `asking`: the parts that ask a judge, by the field that
        names the judge; if it is left out, the parts are those of `rewards`, in this order."""
        if asking is None:
            asking = {f"rewards.{i}.judge": part for i, part in enumerate(parts) if part.asks_judge}
        for path, part in asking.items():
            if why := self._unasked(part):
                yield FieldProblem(path, why)
        for i, part in enumerate(parts):
            if isinstance(part, HttpPart) and part.endpoint not in self.endpoints:
                yield FieldProblem(f"rewards.{i}.endpoint", f"no service {part.endpoint!r} was given to the run")
            if isinstance(part, PythonPart) and (why := reward_process.problem(part.entry)):
                yield FieldProblem(f"rewards.{i}.entry", why)

    def _unasked(self, part: RewardPart) -> str:
        """The reason why the part cannot ask its judge; empty if it can."""
        name = part.asks_judge
        known = self.judges.get(name)
        if known is None:
            return f"no judge {name!r} was given to the run"
        why = spec_problem(part, known.spec)
        return f"{name!r} {why}" if why else ""

    def open(self, parts: Sequence[RewardPart], models: Mapping[str, Scalar]) -> Services:
        """All judges and services that the parts ask. There is no connection yet. Raises AccessInvalid with every problem."""
        found = list(self.problems(parts))
        found += [
            FieldProblem(f"rewards.{i}.model", f"no folder of the reward model {part.model!r} was given to the run")
            for i, part in enumerate(parts)
            if isinstance(part, RewardModelPart) and part.model not in models
        ]
        if found:
            raise AccessInvalid("; ".join(f"{problem.path}: {problem.message}" for problem in found))
        budgets = {part.asks_judge: budget for part in parts if self._calls(part) and (budget := self._budget(part))}
        asked = {part.asks_judge for part in parts} - {""}
        return Services(
            judges={name: self.judges[name].open(budgets.get(name)) for name in asked},
            models=models,
            endpoints={p.endpoint: _service(self.endpoints[p.endpoint]) for p in parts if isinstance(p, HttpPart)},
            functions={p.entry: Function(p.entry) for p in parts if isinstance(p, PythonPart)},
            budgets=budgets,
        )

    def _budget(self, part: RewardPart) -> Budget | None:
        """The budget of the part. It has no limit if people may set one later."""
        return _budget(part) or (Budget() if self.judges[part.asks_judge].store else None)

    def _calls(self, part: RewardPart) -> bool:
        """Whether this process makes the calls for the part's judge."""
        return bool(part.asks_judge) and isinstance(self.judges[part.asks_judge].target, Target | LocalTarget)


def _service(asked: Target | Relay) -> Service:
    return RelayedService(asked) if isinstance(asked, Relay) else HttpService(asked)


def relayed(access: Access, names: Sequence[str], url: str, token: str) -> Access:
    """Adds the reward services of these names. The server posts to them; it takes the responses at `url`."""
    return replace(access, endpoints={name: Relay(url, token, name) for name in names})


def _budget(part: RewardPart) -> Budget | None:
    tokens, money = getattr(part, "budget_tokens", None), getattr(part, "budget_money", None)
    return None if tokens is None and money is None else Budget(tokens, None if money is None else Decimal(str(money)))


def granted(grants: Mapping[str, JudgeGrant], url: str, token: str, verdicts_url: str) -> Access:
    """The access that the server grants a run: at `url`, or with local weights and the verdict store at `verdicts_url`. Raises
    AccessInvalid for a spec that this version of the program does not know."""
    return Access({name: _granted(name, grant, url, token, verdicts_url) for name, grant in grants.items()})


def _granted(name: str, grant: JudgeGrant, url: str, token: str, verdicts_url: str) -> JudgeAccess:
    try:
        spec = resolve(dict(grant.spec))
    except ConfigInvalid as error:
        raise AccessInvalid(f"judge {name!r}: {error}") from error
    if not grant.local:
        return JudgeAccess(spec, grant.key, Gateway(url, token, name))
    prices = Prices(Decimal(grant.prices[0]), Decimal(grant.prices[1])) if grant.prices else None
    target = _local(spec, grant.local, prices, grant.adapters)
    return JudgeAccess(spec, grant.key, target, ServerStore(verdicts_url, token, name))


def _local(spec: BaseSpec, folder: str, prices: Prices | None = None, adapters: tuple[str, ...] = ()) -> LocalTarget:
    """A local judge. A judge of criteria needs one forward pass for each criterion: the probability of yes is its answer."""
    yes_no, worded = spec.kind == "criterion", wording(spec)
    return LocalTarget(LOCAL_JUDGE, os.getcwd(), folder, yes_no, worded, prices, adapters)


def read(path: Path) -> Access:
    """The access that a file describes, for runs without a server. Raises AccessInvalid, naming the entry.

    `{"judges": {name: {"spec": {..}, "endpoint": {..}} or {"spec": {..}, "model": directory}}, "services": {name: {..}}}`.
    An endpoint has `url`, `model`, and if wanted `key_env`, `concurrency`, `requests_per_minute`, `timeout_s`, `retries`,
    `supports_schema`, `price_prompt`, `price_completion`; a service has `url`, `secret_env` and those limits. Keys and
    secrets stay in the environment: the file names their variables.
    """
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise AccessInvalid(f"{path}: {os.strerror(error.errno or 0)}") from error
    except ValueError as error:
        raise AccessInvalid(f"{path}: not JSON: {error}") from error
    try:
        _only(raw, {"judges", "services"}, "the file")
        judges = {name: _judge(name, entry) for name, entry in raw.get("judges", {}).items()}
        services = {
            name: _target(entry, f"services.{name}", {"url"}, "secret_env")
            for name, entry in raw.get("services", {}).items()
        }
    except AccessInvalid as error:
        raise AccessInvalid(f"{path}: {error}") from error
    return Access(judges, services)


def _judge(name: str, entry: Any) -> JudgeAccess:
    where = f"judges.{name}"
    _only(entry, {"spec", "endpoint", "model"}, where)
    try:
        spec = resolve(entry.get("spec") or {})
    except ConfigInvalid as error:
        raise AccessInvalid("; ".join(f"{where}.spec.{p.path}: {p.message}" for p in error.problems)) from error
    if ("endpoint" in entry) == ("model" in entry):
        raise AccessInvalid(f"{where}: give either an endpoint or the directory of a model")
    if "model" in entry:
        return local_judge(spec, str(entry["model"]))
    target = _target(entry["endpoint"], f"{where}.endpoint", {"url", "model"}, "key_env")
    return JudgeAccess(spec, digest(spec, f"{target.url} {target.model}"), target)


def local_judge(spec: BaseSpec, folder: str) -> JudgeAccess:
    """A judge that the model in this folder answers, on this machine."""
    return JudgeAccess(spec, digest(spec, folder), _local(spec, folder))


_LIMITS: dict[str, type | tuple[type, ...]] = {
    "concurrency": int,
    "requests_per_minute": int,
    "timeout_s": (int, float),
    "retries": int,
    "supports_schema": bool,
}


def _target(entry: Any, where: str, needed: set[str], secret: str) -> Target:
    _only(entry, needed | {secret, *_LIMITS, "price_prompt", "price_completion"}, where)
    for key in needed:
        if not isinstance(entry.get(key), str) or not entry[key]:
            raise AccessInvalid(f"{where}.{key}: is missing")
    limits = {key: entry[key] for key in _LIMITS if key in entry}
    for key, value in limits.items():
        wanted = _LIMITS[key]
        negative = isinstance(value, int | float) and value < 0
        if not isinstance(value, wanted) or isinstance(value, bool) != (wanted is bool) or negative:
            raise AccessInvalid(f"{where}.{key}: {value!r} cannot be used")
    variable = entry.get(secret)
    if variable is not None and variable not in os.environ:
        raise AccessInvalid(f"{where}.{secret}: the variable {variable} is not set")
    return Target(
        entry["url"],
        entry.get("model", ""),
        os.environ[variable] if variable is not None else None,
        prices=_prices(entry, where),
        **limits,
    )


def _prices(entry: Mapping[str, Any], where: str) -> Prices | None:
    if "price_prompt" not in entry and "price_completion" not in entry:
        return None
    try:
        prompt, completion = (Decimal(str(entry[key])) for key in ("price_prompt", "price_completion"))
    except (KeyError, InvalidOperation):
        raise AccessInvalid(f"{where}: price_prompt and price_completion are two numbers per million tokens") from None
    return Prices(prompt, completion)


def _only(entry: Any, known: set[str], where: str) -> None:
    if not isinstance(entry, dict):
        raise AccessInvalid(f"{where}: must be an object")
    if unknown := sorted(entry.keys() - known):
        raise AccessInvalid(f"{where}: unknown key {unknown[0]!r}; there are {', '.join(sorted(known))}")
