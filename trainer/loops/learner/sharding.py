"""One model spread over several processes with torch's FSDP2 (`fully_shard`).

Every process holds a share of each weight, of its gradient and of the optimiser's state. Before a layer runs, the processes
gather its weights from one another, and afterwards drop them. So all of them must run the same passes in the same order,
forward and backward, and ask for whole tensors together.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor, nn

from trainer.checkpoints import Rows, StoredTensors

if TYPE_CHECKING:
    from torch.distributed.tensor import DTensor


@dataclass(frozen=True)
class ModelShare:
    """The place of this process among those that hold a model together. `mesh` is None if one process holds it all."""

    rank: int = 0
    ranks: int = 1
    mesh: Any = None

    def spread(self, whole: nn.Module, layers: list[nn.Module], compute: torch.dtype | None) -> None:
        """Keep this process's share of every parameter of `whole`; passes gather them layer by layer.

        `compute` is the dtype of the passes, if it is narrower than the parameters. The shares are then the masters:
        they are gathered rounded, and gradients are summed up in float32.
        """
        if self.mesh is None:
            return
        from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard

        reduce = torch.float32 if compute else None
        mixed = MixedPrecisionPolicy(param_dtype=compute, reduce_dtype=reduce)
        for module in [*layers, whole]:
            fully_shard(module, mesh=self.mesh, mp_policy=mixed)
        for module in whole.modules():
            if isinstance(module, FSDPModule):
                # An objective divides by the totals of the update, so gradients of the processes are added, not averaged.
                module.set_gradient_divide_factor(1.0)
                module.set_force_sum_reduction_for_comms(True)

    def any(self, here: bool) -> bool:
        """Whether `here` is true in any process; all processes get the same answer."""
        return here if self.mesh is None else bool(self.add_up(torch.tensor([float(here)]))[0])

    def add_up(self, tensor: Tensor) -> Tensor:
        """The sum of this tensor over the processes."""
        if self.mesh is not None:
            on_device = tensor.to(self.mesh.device_type)
            torch.distributed.all_reduce(on_device)
            tensor.copy_(on_device)
        return tensor


def whole(tensor: Tensor) -> Tensor:
    """The whole tensor, gathered if this process has a share."""
    gather = getattr(tensor, "full_tensor", None)
    return gather() if gather else tensor


def share_of(value: Tensor, like: Tensor) -> Tensor:
    """A whole tensor on the device of `like`, spread like it."""
    moved = value.to(like.device)
    if not hasattr(like, "full_tensor"):
        return moved
    from torch.distributed.tensor import distribute_tensor

    spread = cast("DTensor", like)
    return distribute_tensor(moved, spread.device_mesh, spread.placements)


def rows_of(tensor: Tensor) -> Rows | None:
    """The rows of a tensor that this process saves; None if every process has the whole tensor and this is not the first one, which saves it."""
    if not hasattr(tensor, "full_tensor"):
        return Rows(tensor) if _rank() == 0 else None
    start, stop = _own_rows(tensor)
    local = own_part(tensor)
    assert len(local) == stop - start  # noqa: S101 - else the file would say other rows than it holds
    return Rows(local, start, tensor.shape[0])


def stored_share(tensors: Mapping[str, Tensor], name: str, like: Tensor) -> Tensor:
    """`tensors[name]` on the device of `like`, spread like it. From files only this process's rows are read."""
    if not isinstance(tensors, StoredTensors) or not hasattr(like, "full_tensor"):
        return share_of(tensors[name], like)
    from torch.distributed.tensor import DTensor

    start, stop = _own_rows(like)
    local, spread = tensors.rows(name, start, stop).to(like.device), cast("DTensor", like)
    return DTensor.from_local(
        local, spread.device_mesh, spread.placements, run_check=False, shape=like.shape, stride=like.stride()
    )


def own_part(tensor: Tensor) -> Tensor:
    """The tensor itself, or this process's share of it; no copy is made."""
    local = getattr(tensor, "to_local", None)
    return local() if local else tensor


def shape_of(tensors: Mapping[str, Tensor], name: str) -> tuple[int, ...]:
    """The shape of the whole tensor; from files only the shape is read."""
    return tensors.shape(name) if isinstance(tensors, StoredTensors) else tuple(tensors[name].shape)


def _own_rows(spread: Any) -> tuple[int, int]:
    """The first row of this process and the row after its last. FSDP2 deals rows out as `torch.chunk` does: equal parts, the last ones
    shorter or empty.
    """
    rank, ranks, rows = spread.device_mesh.get_local_rank(), spread.device_mesh.size(), spread.shape[0]
    part = -(-rows // ranks)
    return min(rank * part, rows), min((rank + 1) * part, rows)


def _rank() -> int:
    return torch.distributed.get_rank() if torch.distributed.is_initialized() else 0
