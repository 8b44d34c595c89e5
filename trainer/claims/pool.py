"""A pool of demonstrations that is unbalanced and partly wrong, and what is picked from it to learn.

A demonstration answers a prompt of the syllables (`trainer.claims.toy`): it says the two that its topic asks for, and two more by
Zipf's law. Half of the pool is about the first topic, a quarter about the second, and so on: of the rarest there are some eight among
a thousand. One demonstration in twenty is wrong: it says four syllables at random. Held-out prompts ask for every topic alike.
"""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from trainer.contracts import Example, Message
from trainer.selection import k_center, sliding_perplexity

from .toy import SYLLABLES, TOPICS, all_of, ranked

POOL, HELD_OUT = 1_000, 8
"""Demonstrations, and held-out prompts of each topic."""
SHARE = 0.1
WRONG = 0.05
_WANTED, _SAID = 2, 4
_BATCH = 100


def demonstrations(seed: int = 0) -> list[Example]:
    """Pools of other seeds ask for other syllables."""
    chooser = random.Random(seed)  # noqa: S311 - a task, not a secret
    said = ranked()
    asked = chooser.sample(said[5:], _WANTED * len(TOPICS))
    wanted = {topic: asked[_WANTED * place :][:_WANTED] for place, topic in enumerate(TOPICS)}
    shares = [0.5 ** (place + 1) for place in range(len(TOPICS))]
    rows = []
    for place, topic in enumerate(chooser.choices(TOPICS, shares, k=POOL)):
        answer = _answer(chooser, said, wanted[topic])
        rows.append(_example(f"train-{place}", topic, chooser.randrange(100), wanted[topic], answer))
    for topic in TOPICS:
        for place in range(HELD_OUT):
            answer = " ".join(wanted[topic])
            rows.append(_example(f"{topic}-{place}", topic, chooser.randrange(100), wanted[topic], answer, "heldout"))
    return rows


def picked(name: str, model: Path, seed: int) -> list[Example]:
    """Of the pool of this seed what an arm learns, and all that is held out: `all`, `random` a tenth, or a tenth by K-center, with the
    distances weighted by perplexity under the model that is trained (`cover`) or as they are (`distance`)."""
    rows = demonstrations(seed)
    pool = [row for row in rows if row.split == "train"]
    others = [row for row in rows if row.split != "train"]
    few = round(SHARE * len(pool))
    if name == "all":
        places = list(range(len(pool)))
    elif name == "random":
        places = random.Random(seed).sample(range(len(pool)), few)  # noqa: S311 - as above
    else:
        vectors, surprise = _measured(pool, model)
        places = k_center(vectors, surprise if name == "cover" else np.ones(len(pool)), few)
    return [pool[place] for place in sorted(places)] + others


def _measured(rows: Sequence[Example], model_folder: Path) -> tuple[Any, Any]:
    """Of each demonstration, the mean last layer over the conversation, and the perplexity of its answer."""
    import torch

    from trainer.inference.chat import encode_prompt
    from trainer.inference.models import load_model, load_tokenizer

    tokenizer, model = load_tokenizer(model_folder), load_model(model_folder)
    vectors, surprise = [], []
    with torch.inference_mode():
        for row in rows:
            prompt, answer = encode_prompt(tokenizer, row.prompt), tokenizer(row.reference)["input_ids"]
            out = model(input_ids=torch.tensor([[*prompt, *answer]]), output_hidden_states=True)
            vectors.append(out.hidden_states[-1][0].mean(0).double().numpy())
            logp = out.logits[0, len(prompt) - 1 : -1].log_softmax(-1).gather(1, torch.tensor(answer)[:, None])
            surprise.append(sliding_perplexity(logp[:, 0].numpy()) or 0.0)
    return np.stack(vectors), np.array(surprise)


def _answer(chooser: random.Random, said: Sequence[str], wanted: Sequence[str]) -> str:
    if chooser.random() < WRONG:
        return " ".join(chooser.sample(SYLLABLES, _SAID))
    words = list(wanted)
    while len(words) < _SAID:
        (syllable,) = chooser.choices(said, [1.0 / rank for rank in range(1, len(said) + 1)])
        if syllable not in words:
            words.append(syllable)
    chooser.shuffle(words)
    return " ".join(words)


def _example(key: str, topic: str, number: int, wanted: Sequence[str], answer: str, split: Any = "train") -> Example:
    prompt = (Message(role="user", content=f"{topic} {number}"),)
    return Example(key=key, prompt=prompt, split=split, domain=topic, rubric=all_of(wanted), reference=answer)
