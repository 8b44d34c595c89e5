"""Two simulated GPUs: tensors say that they are on `card:0` or `card:1`, but their numbers are in the memory of the CPU.

An operation on tensors of two places is refused, as a GPU refuses it. Only copying moves numbers from one place to another, and each such
move is recorded.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only
from torch.utils.backend_registration import (
    _DummyBackendModule,
    _DummyDeviceGuard,
    _DummyPrivateUse1Hook,
    _setup_privateuseone_for_python_backend,
)

NAME = "card"
CPU = torch.device("cpu")
INDEXED = {"aten.index": 1, "aten.index_put": 1, "aten.index_put_": 1}
"""The number of tensors of an operation that must be in the same place. A GPU accepts other tensors from the CPU too."""
MOVES = ("aten._to_copy", "aten.copy_", "aten.to")


class OnCard(Tensor):
    """A tensor that says it is on a card. `own` has the numbers."""

    own: Tensor
    at: torch.device
    # autograd knows one device of a Python backend, and only that one is registered
    device = property(lambda self: self.at)

    @staticmethod
    def __new__(cls, own: Tensor, device: torch.device) -> "OnCard":
        made: OnCard = Tensor._make_wrapper_subclass(
            cls,
            own.size(),
            strides=own.stride(),
            storage_offset=own.storage_offset(),
            dtype=own.dtype,
            device=f"{NAME}:0",  # type: ignore[arg-type]
        )
        made.own, made.at = own, device
        return made

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # type: ignore[override]
        return run(func, args, kwargs or {})


class Mixed(RuntimeError):
    """Runs one operation on tensors of several places."""


class Move(NamedTuple):
    """A copy from one place to another. `whole` says whether the numbers are integers, such as tokens and positions."""

    source: str
    target: str
    shape: tuple[int, ...]
    whole: bool


LOG: list[Move] = []


def run(func: Any, args: Any, kwargs: Any) -> Any:
    """Runs the operation on the processor, as if on the GPU of the tensors."""
    flat = tree_leaves((args, kwargs))
    tensors = [each for each in flat if isinstance(each, Tensor)]
    wanted = next((each for each in flat if isinstance(each, torch.device)), None)
    name = str(func).rsplit(".", 1)[0]
    if name in MOVES:
        source = args[1] if name == "aten.copy_" else args[0]
        at = args[0].device if name == "aten.copy_" else wanted or source.device
        if source.device != at:
            LOG.append(Move(str(source.device), str(at), tuple(source.shape), not source.is_floating_point()))
    else:
        at = wanted or one_place(func, tensors)
    out = func(*bare(args), **bare(kwargs))
    if at.type != NAME:
        return out
    known = {id(each.own): each for each in tensors if isinstance(each, OnCard) and each.at == at}
    return tree_map_only(Tensor, lambda own: known[id(own)] if id(own) in known else OnCard(own, at), out)


def one_place(func: Any, tensors: Sequence[Tensor]) -> torch.device:
    """The place of all tensors. Single numbers of the CPU may be used with any GPU. Raises Mixed."""
    cards = {each.at for each in tensors if isinstance(each, OnCard)}
    taken = INDEXED.get(str(func).rsplit(".", 1)[0], len(tensors))
    others = [each for each in tensors[:taken] if not isinstance(each, OnCard) and each.dim()]
    if len(cards) > 1 or (cards and others):
        raise Mixed(f"{func} on {', '.join(sorted(str(each.device) for each in tensors))}")
    return next(iter(cards), CPU)


def bare(given: Any) -> Any:
    """The same operation for the CPU."""
    given = tree_map_only(OnCard, lambda each: each.own, given)
    return tree_map_only(torch.device, lambda each: CPU if each.type == NAME else each, given)


class Written(TorchFunctionMode):
    """`torch.tensor` does not ask a mode of operations where to put the numbers."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is torch.tensor and (device := kwargs.get("device")) is not None:
            return func(*args, **kwargs | {"device": CPU}).to(device)
        if func is Tensor.__getitem__ and isinstance(args[1], list):
            return args[0][torch.tensor(args[1], dtype=torch.long)]
        if func is Tensor.tolist and isinstance(args[0], OnCard):
            return args[0].own.tolist()
        return func(*args, **kwargs)


class Operations(TorchDispatchMode):
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return run(func, args, kwargs or {})


class _Module(_DummyBackendModule):
    """Draws no random numbers, because only the CPU has a generator."""

    def get_rng_state(self, device: Any = None) -> Tensor:
        return torch.empty(0, dtype=torch.uint8)

    def set_rng_state(self, state: Tensor, device: Any = None) -> None:
        pass


@contextmanager
def cards() -> Iterator[list[Move]]:
    """In this context there are `card:0` and `card:1`; it gives the list of copies between them. The process knows the name from then on."""
    _name_them()
    LOG.clear()
    with Operations(), Written():
        yield LOG


@cache
def _name_them() -> None:
    _setup_privateuseone_for_python_backend(NAME, _Module(), _DummyPrivateUse1Hook(), _DummyDeviceGuard())
