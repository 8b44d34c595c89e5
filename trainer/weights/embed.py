"""Sentence embeddings of a dataset's texts."""

import base64
from collections.abc import Mapping
from itertools import islice
from typing import Any

from .client import JobClient

_PER_POST = 64


def work(client: JobClient) -> Mapping[str, Any]:
    """One result per item: `{"key", "vectors": {id: unit vector}}`, base64 of little-endian float16; `""` names the prompt.

    The outcome names the `embedder` and the `width` of its vectors.
    """
    from trainer.inference.embeddings import NAME, Embedder

    embed = Embedder()
    client.phase = "embedding"
    items, width = client.items(), 0
    while together := list(islice(items, _PER_POST)):
        texts = [(item["key"], each["id"], each["text"]) for item in together for each in item["texts"]]
        vectors = embed([text for _, _, text in texts]).half().numpy()
        width = int(vectors.shape[1])
        found: dict[str, dict[str, str]] = {item["key"]: {} for item in together}
        for (key, name, _), vector in zip(texts, vectors, strict=True):
            found[key][name] = base64.b64encode(vector.astype("<f2").tobytes()).decode()
        client.store([{"key": key, "vectors": rows} for key, rows in found.items()])
    return {"embedder": NAME, "width": width}
