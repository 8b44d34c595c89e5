"""vLLM 0.32: the code inside its worker. vLLM imports this module because `worker_extension_cls` names it."""

import ctypes
import json
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Any

import torch
from safetensors import safe_open
from torch import Tensor
from vllm.distributed.weight_transfer import WeightTransferEngine, WeightTransferEngineFactory
from vllm.distributed.weight_transfer.base import WeightTransferInitInfo, WeightTransferUpdateInfo
from vllm.model_executor.model_loader.reload import finalize_layerwise_reload, initialize_layerwise_reload

from trainer.inference.checksum import FORMAT, Checksum

from .v0_32 import TRANSFER

_PDEATHSIG = 1  # sys/prctl.h
_LOOK_S = 2.0


@dataclass
class Nothing(WeightTransferInitInfo):
    """No settings, because a file needs no rendezvous."""


@dataclass
class WeightFile(WeightTransferUpdateInfo):
    path: str


class FileTransfer(WeightTransferEngine[Nothing, WeightFile]):
    """Weights from a safetensors file. vLLM's own engines need CUDA; this one also works on a CPU."""

    init_info_cls = Nothing
    update_info_cls = WeightFile

    def init_transfer_engine(self, init_info: Nothing) -> None:
        pass

    def start_weight_update(self) -> None:
        initialize_layerwise_reload(self.model)

    def finish_weight_update(self) -> None:
        finalize_layerwise_reload(self.model, self.model_config)
        if self.model_config.hf_config.tie_word_embeddings:
            # On a CPU the head has a packed copy of the embedding, which a reload does not change.
            model: Any = self.model
            head = model.lm_head.tie_weights(model.model.embed_tokens)
            head.quant_method.process_weights_after_loading(head)

    def receive_weights(self, update_info: WeightFile) -> None:
        self.model.load_weights(self._tensors(update_info.path))  # type: ignore[operator]

    def _tensors(self, path: str) -> Iterator[tuple[str, Tensor]]:
        with safe_open(path, framework="pt", device=str(self.device)) as file:
            for name in file.keys():  # noqa: SIM118 - it is not a dictionary
                yield name, file.get_tensor(name)

    def shutdown(self) -> None:
        pass


WeightTransferEngineFactory.register_engine(TRANSFER, FileTransfer)


class Worker:
    """Methods added to vLLM's worker, called by `collective_rpc`: arguments and results are text."""

    model_runner: Any
    vllm_config: Any

    def touchstone_follow(self, pid: str) -> str:
        """End together with the engine that started this worker, and with process `pid`, which trains: a killed process closes
        nothing, and vLLM would keep the memory and go on running.
        """
        ctypes.CDLL(None).prctl(_PDEATHSIG, signal.SIGKILL)
        Thread(target=_follow, args=(int(pid),), name="follow", daemon=True).start()
        return pid

    def touchstone_facts(self) -> str:
        config = self.vllm_config
        lora = config.lora_config
        return json.dumps(
            {
                "checksum_format": FORMAT,
                "dtype": str(config.model_config.dtype).removeprefix("torch."),
                "logprobs_mode": config.model_config.logprobs_mode,
                "max_model_len": config.model_config.max_model_len,
                "workers": config.parallel_config.world_size,
                "max_lora_rank": lora.max_lora_rank if lora else 0,
            }
        )

    def touchstone_checksum(self, names: str) -> str:
        """The `Checksum` of the parameters under transformers' names."""
        held = HeldWeights(self.model_runner)
        checksum = Checksum()
        for name in json.loads(names):
            checksum.add(name, held.read(name))
        return checksum.hexdigest()


def _follow(pid: int) -> None:
    while Path(f"/proc/{pid}").exists():
        time.sleep(_LOOK_S)
    os._exit(1)  # the engine notices, and ends as well


class HeldWeights:
    """Weights as the worker computes with them. vLLM joins some layers, pads the vocabulary, and on a CPU keeps only packed copies."""

    def __init__(self, runner: Any) -> None:
        self._model = runner.get_model()
        self._modules = dict(self._model.named_modules())
        self._dtype = runner.model_config.dtype
        self._tied = runner.model_config.hf_config.tie_word_embeddings
        self._adapters: Any = getattr(runner, "lora_manager", None)
        self._whole: tuple[Any, Tensor] = (None, torch.empty(0))

    def read(self, name: str) -> Tensor:
        """The weight of this name. Raises KeyError for a name that the model does not have."""
        path, _, kind = name.rpartition(".")
        if path.endswith((".lora_A", ".lora_B")):
            return self._adapter(*path.rsplit(".", 1))
        layer, place = self._layer(path)
        if kind == "bias":
            return _part(layer, layer.bias, place)
        if self._tied and path.endswith("embed_tokens"):
            return self._tied_embedding(layer)
        return _part(layer, self._weight(layer), place)

    def _layer(self, path: str) -> tuple[Any, int | None]:
        """The module of a layer, and the layer's number if several layers were joined in the module."""
        if path in self._modules:
            return self._modules[path], None
        parent, _, leaf = path.rpartition(".")
        for joined, leaves in self._model.packed_modules_mapping.items():
            if leaf in leaves:
                return self._modules[f"{parent}.{joined}"], leaves.index(leaf)
        raise KeyError(path)

    def _weight(self, layer: Any) -> Tensor:
        layer = getattr(layer, "base_layer", layer)
        if not hasattr(layer, "cpu_linear"):
            return layer.weight[: getattr(layer, "org_vocab_size", None)]
        if self._whole[0] is not layer:
            # The packed weights can only be multiplied with. Multiplying by the identity is exact: each sum has one term.
            width = getattr(layer, "input_size", None) or layer.embedding_dim
            identity = torch.eye(width, dtype=self._dtype)
            self._whole = (layer, layer.cpu_linear(identity, layer.weight, None).T)
        return self._whole[1][: getattr(layer, "org_vocab_size", None)]

    def _tied_embedding(self, layer: Any) -> Tensor:
        embedding = layer.weight[: layer.org_vocab_size]
        head = self._weight(self._modules["lm_head"])
        if not torch.equal(embedding, head):
            raise RuntimeError("the output head holds other weights than the embedding that it is tied to")
        return embedding

    def _adapter(self, path: str, kind: str) -> Tensor:
        """The adapter from the buffers that the layer multiplies with; the rank is padded there."""
        layer, place = self._layer(path)
        manager = self._adapters._adapter_manager
        (adapter,) = manager.list_adapters().values()
        slot = manager.lora_index_to_id.index(adapter.id)
        stacked = (layer.lora_a_stacked if kind == "lora_A" else layer.lora_b_stacked)[place or 0][slot, 0]
        return stacked[: adapter.rank] if kind == "lora_A" else stacked[:, : adapter.rank]


def _part(layer: Any, whole: Tensor, place: int | None) -> Tensor:
    if place is None:
        return whole
    sizes = getattr(layer, "base_layer", layer).output_partition_sizes
    return whole.split(sizes)[place]
