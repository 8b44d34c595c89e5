"""`python -m trainer try-model DIR`: can this model be trained, and by which path? Prints one JSON object. Exit status 0: it was tried, 2:
called wrongly.

Three things are measured on the model itself, in float32:

- packed log-probabilities, as the trainer computes them, against those that the model computes itself
  (`trainer.inference.decoders.compared`);
- adapters: how many layers take one, whether a gradient reaches them, and whether merging them gives the same model;
- the sampler's record of a few responses against the trainer's log-probabilities of them, by the engine check.

`{"path": "grouped" | "generic", "state": "fits", "tokens", "largest", "mean", "adapters", "sampler"}` if it can be trained,
`{"path", "state": "refused", "reason"}` if not, and `{"path", "state": "not_tried", "reason"}` if a temporary problem prevented the
trial: too little memory, a file that cannot be read, a package that is missing. Another trial may succeed.
"""

import argparse
import json
import resource
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from trainer.config import PolicyConfig, resolve
from trainer.config.architectures import path_of
from trainer.config.memory import is_shortage
from trainer.serving.memory import free_bytes, needed_bytes

_COPIES = 2
"""The number of copies of the model: the trainer's and the sampler's."""
_ALLOWED = 2
"""The highest ratio of the trial's memory to its expected memory, so that a wrong forecast does not take the memory of other processes."""
_RESPONSES = 4
_LENGTH = 8
_PUSH = 0.02
"""Spread of the adapters' second matrices, so that they change the model's output."""


def try_model(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m trainer try-model", description=__doc__)
    parser.add_argument("folder", type=Path, help="directory of a model")
    print(json.dumps(tried(parser.parse_args(arguments).folder)))
    return 0


def tried(folder: Path) -> dict[str, Any]:
    """The trial of the model in `folder`; the module says what is measured."""
    from trainer.inference.models import ModelInvalid, check_directory

    told: dict[str, Any] = {"path": "generic"}
    try:
        check_directory(folder)
        told["path"] = path_of(json.loads((folder / "config.json").read_text()).get("model_type"))
        needed, free = _COPIES * needed_bytes(folder), free_bytes()
        if free is not None and needed > free:
            reason = f"it takes about {needed / 1e9:.1f} GB of memory here, and {free / 1e9:.1f} GB are free"
            return told | {"state": "not_tried", "reason": reason}
        with _within(min(_ALLOWED * needed, free or _ALLOWED * needed)):
            return told | {"state": "fits", **_measured(folder)}
    except (
        ValueError,
        RuntimeError,
        TypeError,
        AttributeError,
        LookupError,
        OSError,
        ImportError,
        MemoryError,
    ) as error:
        # Any error may come from the code of an unknown architecture.
        words = str(error).removeprefix(f"{folder}: ") if isinstance(error, ModelInvalid) else _named(error)
        return told | {"state": "not_tried" if _of_the_moment(error) else "refused", "reason": words[:500]}


def _named(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


def _of_the_moment(error: BaseException | None) -> bool:
    """Whether the error, or one that caused it, has a temporary reason: no memory, an unreadable file, a missing package."""
    if error is None:
        return False
    wanting = isinstance(error, OSError | ImportError) or is_shortage(_named(error))
    return wanting or _of_the_moment(error.__cause__)


@contextmanager
def _within(more: int) -> Iterator[None]:
    """While the block runs, this process may take at most `more` further bytes; beyond that, Python raises MemoryError and torch its own
    error.

    The limit (RLIMIT_DATA) counts memory that is written to, and not the address space, of which libraries reserve more than they use.
    """
    taken = _taken_bytes()
    if taken is None:
        yield
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    most = taken + more
    resource.setrlimit(resource.RLIMIT_DATA, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def _taken_bytes() -> int | None:
    """Bytes of data that the process has taken; None if the system does not say."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmData:"))
    except (OSError, StopIteration, ValueError):
        return None


def _measured(folder: Path) -> dict[str, Any]:
    from trainer.inference.decoders import compared, make_ready
    from trainer.inference.models import check_tokenizer, load_model, load_tokenizer

    tokenizer, model = load_tokenizer(folder), load_model(folder).eval()
    check_tokenizer(tokenizer, model, folder)
    make_ready(model)
    found = compared(model)
    config = resolve(
        "policy",
        {"model": {"lora": {"rank": 4, "alpha": 8.0}}, "rollout": {"max_new_tokens": _LENGTH}, "scaffold": None},
    )
    assert isinstance(config, PolicyConfig)  # noqa: S101 - it is the schema of that recipe
    numbers = {"tokens": found.tokens, "largest": found.largest, "mean": found.mean}
    return numbers | _with_adapters(folder, model, tokenizer, config)


def _with_adapters(folder: Path, model: Any, tokenizer: Any, config: PolicyConfig) -> dict[str, Any]:
    """Draw adapters' weights at random, merge them into a sampler's copy, and compare its responses with the trainer."""
    import torch

    from trainer.inference.local import LocalSampler
    from trainer.inference.models import ModelInvalid, load_model
    from trainer.loops.learner.engine_check import agreement
    from trainer.loops.learner.learner import Learner
    from trainer.loops.session.errors import RunFailed

    learner = Learner(model, config)
    layers = sum(hasattr(module, "lora_A") for module in learner.plain.modules())
    draw = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for name, parameter in learner.parameters.items():
            if "lora_B" in name:
                parameter.copy_(_PUSH * torch.randn(parameter.shape, generator=draw))
    sampler = LocalSampler(load_model(folder), tokenizer)
    sampler.load_weights(learner.merged_weights(), 1)
    responses = _responses(sampler, tokenizer, config)
    try:
        found = agreement(learner, responses, config)
    except RunFailed as error:
        raise ModelInvalid(str(error)) from error
    if why := found.problem(config.model.dtype):
        raise ModelInvalid(f"with adapters, sampler and trainer disagree: {why}")
    learner.begin_update()
    sum(
        (part.logp_T.sum() for part in learner.score([(t.prompt, t.tokens) for t in responses], 1.0)), torch.zeros(())
    ).backward()
    if not learner.clip(1.0) > 0.0:
        raise ModelInvalid("no gradient reaches its adapters")
    return {"adapters": layers, "sampler": found.mean}


def _responses(sampler: Any, tokenizer: Any, config: PolicyConfig) -> Sequence[Any]:
    from trainer.contracts import Message
    from trainer.inference.chat import encode_prompt
    from trainer.rollouts import PromptPlan, Trajectory, sample_plans

    prompts = [
        encode_prompt(tokenizer, [Message(role="user", content=text)]) for text in ("Say something.", "And now?")
    ]
    plans = [
        PromptPlan("trial", group, place, "", prompt, prompt, 10 * group + place)
        for group, prompt in enumerate(prompts)
        for place in range(_RESPONSES // len(prompts))
    ]
    results = sample_plans(sampler, plans, config.rollout)
    return [Trajectory.of(plan, result) for plan, result in zip(plans, results, strict=True)]
