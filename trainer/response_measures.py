"""`python -m trainer diversity` and `novelty`: measures of responses that need a model. JSON Lines in, JSON Lines out.

diversity. In: {"id": any, "texts": [text, ...]}, the responses to one prompt. Out: {"embedder": name}, then for each line
{"id": ..., "diversity": mean cosine distance over all pairs of texts}, null for fewer than two.

novelty. In: {"model": directory, "config": resolved config of the run, "checkpoint": directory}, then
{"id": any, "prompt": [{"role", "content"}, ...], "text": response}. Out for each response {"id": ..., "novelty": rho}, null
if it has no token; rho = exp(mean over tokens of log pi - log pi_init) at temperature 1 (RuscaRL, 2025).
"""

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from trainer.metrics.policy import embedding_diversity

AT_ONCE = 8  # responses scored in one pass
Line = dict[str, Any]


def diversity(arguments: list[str]) -> int:
    """Exit status 0: done; 1: the model is not installed; 2: the input cannot be read. Reasons go to stderr."""
    return _carry_out("diversity", arguments, _diverse)


def novelty(arguments: list[str]) -> int:
    """Exit status 0: done; 1: a model or checkpoint is missing or does not fit; 2: the input cannot be read. Reasons go to stderr."""
    return _carry_out("novelty", arguments, _novel)


def _carry_out(name: str, arguments: list[str], work: Callable[[Sequence[Line]], Iterator[Line]]) -> int:
    if arguments:
        print(f"python -m trainer {name} takes no arguments; it reads JSON Lines from its input", file=sys.stderr)
        return 2
    try:
        lines = [json.loads(line) for line in filter(str.strip, sys.stdin)]
    except ValueError as error:
        print(f"the input cannot be read: {error}", file=sys.stderr)
        return 2
    try:
        for found in work(lines):
            print(json.dumps(found))
    except (KeyError, TypeError) as error:
        print(f"the input cannot be read: {error!r}", file=sys.stderr)
        return 2
    except (ValueError, OSError) as error:
        print(str(error).replace("\n", " "), file=sys.stderr)
        return 1
    return 0


def _diverse(lines: Sequence[Line]) -> Iterator[Line]:
    from trainer.inference.embeddings import NAME, Embedder

    embed = Embedder()
    yield {"embedder": NAME}
    for line in lines:
        vectors = embed([str(text) for text in line["texts"]]).double().numpy()
        yield {"id": line["id"], "diversity": embedding_diversity(vectors) if len(vectors) > 1 else None}


def _novel(lines: Sequence[Line]) -> Iterator[Line]:
    """The novelty of each response. Responses are encoded again by the tokenizer of both models, so that they are compared token by token."""
    import torch

    from trainer.checkpoints import load
    from trainer.config import resolve
    from trainer.contracts import Message
    from trainer.inference.chat import encode_prompt
    from trainer.inference.models import load_model, load_tokenizer
    from trainer.loops.learner.learner import Learner

    head, *rows = lines
    directory = Path(head["model"])
    tokenizer: Any = load_tokenizer(directory)
    learner = Learner(load_model(directory, "float32"), resolve("policy", head["config"]), reference=True)
    policy = {name: tensor.float() for name, tensor in load(Path(head["checkpoint"])).tensors["policy"].items()}
    encoded = []
    for row in rows:
        prompt = encode_prompt(tokenizer, [Message(**message) for message in row["prompt"]])
        encoded.append((prompt, tuple(tokenizer(row["text"], add_special_tokens=False)["input_ids"])))
    with torch.no_grad(), learner.holding(policy):
        for start in range(0, len(rows), AT_ONCE):
            batch = range(start, min(start + AT_ONCE, len(rows)))
            scored = [at for at in batch if encoded[at][1]]
            given = [encoded[at] for at in scored]
            now, before = (learner.score(given, 1.0, untrained) if given else [] for untrained in (False, True))
            pairs = zip(now, before, strict=True)
            rho = dict(zip(scored, [float((n.logp_T - b.logp_T).mean().exp()) for n, b in pairs], strict=True))
            for at in batch:
                yield {"id": rows[at]["id"], "novelty": rho.get(at)}
