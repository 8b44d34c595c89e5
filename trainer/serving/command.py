"""`python -m trainer model-server`: started by the web server, one process for each model that is tried."""

import argparse
import sys
import threading
from pathlib import Path
from tempfile import TemporaryDirectory

from trainer.contracts import ModelSource

from .memory import OutOfMemory, check_fits
from .server import Failed, ServedModel, ServedScorer, Server

IDLE_S = 300.0


def main(arguments: list[str]) -> int:
    """Holds a model and answers on a socket until its input ends or no request has come for a while.

    Exit status 0: done; 1: the model cannot be loaded (the callers get the reason).
    """
    parser = argparse.ArgumentParser(prog="python -m trainer model-server", description=main.__doc__)
    parser.add_argument("--model", required=True, help="directory of a model, or its hub id")
    parser.add_argument(
        "--adapter", action="append", default=[], help="folder of an adapter laid on the model; in order"
    )
    parser.add_argument("--head", choices=("lm", "scalar"), default="lm", help="whether it writes text or scores it")
    parser.add_argument("--socket", type=Path, required=True, help="path of the socket to answer on")
    parser.add_argument("--idle", type=float, default=IDLE_S, help="seconds without a request after which it ends")
    options = parser.parse_args(arguments)
    server = Server(options.socket, options.idle)
    threading.Thread(target=_end_with_input, args=(server,), daemon=True).start()
    source = ModelSource(path=options.model, adapters=tuple(options.adapter), head=options.head)
    try:
        server.serve(lambda: load(source))
    except Failed as problem:
        print(problem.message, file=sys.stderr)
        return 1
    finally:
        server.close()
    return 0


def load(source: ModelSource) -> ServedModel | ServedScorer:
    """The model with its adapters, in float32. Raises Failed."""
    from trainer.inference.models import ModelInvalid

    try:
        return _scorer(source) if source.head == "scalar" else _loaded(source)
    except OutOfMemory as error:
        raise Failed("memory", str(error)) from error
    except MemoryError as error:
        raise Failed("memory", "The memory ran out while the model was loaded.") from error
    except (ModelInvalid, OSError, ImportError, RuntimeError, ValueError) as error:
        raise Failed("failed", f"The model cannot be loaded: {error}"[:1000]) from error


def _loaded(source: ModelSource) -> ServedModel:
    from trainer.inference.adapters import load_merged
    from trainer.inference.local import LocalSampler
    from trainer.inference.models import best_device, check_directory, load_model, load_tokenizer, model_directory

    base = model_directory(source.path)
    check_directory(base)
    check_fits(base)
    adapters = [Path(path) for path in source.adapters]
    model = load_merged(base, adapters) if adapters else load_model(base).to(best_device())
    tokenizer = load_tokenizer(base)
    return ServedModel(LocalSampler(model, tokenizer), tokenizer, int(model.config.max_position_embeddings))


def _scorer(source: ModelSource) -> ServedScorer:
    from trainer.inference.adapters import whole_directory
    from trainer.inference.models import check_directory, model_directory
    from trainer.inference.reward_models import RewardModel

    base = model_directory(source.path)
    check_directory(base)
    check_fits(base)
    with TemporaryDirectory(prefix="reward-model-") as merged:
        return ServedScorer(RewardModel(whole_directory(source, Path(merged) / "model")))


def _end_with_input(server: Server) -> None:
    """End when the pipe closes, which it does when the process that started this one has ended."""
    sys.stdin.buffer.read()
    server.end()
