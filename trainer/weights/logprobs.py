"""Measures the likelihood of responses under a model: the log-probabilities of their tokens at temperature 1."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from trainer.contracts import Message
from trainer.inference.adapters import whole_directory
from trainer.inference.decoders import body, make_ready, tree_inputs, tried
from trainer.inference.models import best_device, check_tokenizer, load_model, load_tokenizer
from trainer.inference.prefix import PrefixTree, pack
from trainer.inference.turns import LearntTurns, TurnsUnfit, encode_turns
from trainer.loops.recipes.sft import end_tokens

from .client import JobClient

AT_ONCE = 4096
"""Tokens of one pass; its memory grows with them."""


class Measure:
    """A language model that scores given responses. Raises ModelInvalid."""

    def __init__(self, folder: Path) -> None:
        self._tokenizer = load_tokenizer(folder)
        model = load_model(folder)
        check_tokenizer(self._tokenizer, model, folder)
        tried(model.eval())
        make_ready(model)
        self._model = model.eval().requires_grad_(False).to(best_device())
        self._longest = int(model.config.max_position_embeddings)
        self._ends = end_tokens(model, self._tokenizer)

    def of(self, prompt: Sequence[Message], answers: Sequence[str]) -> list[list[float] | str]:
        """The log-probability of each token of each answer, with its end, given the prompt; or why there is none.

        What the answers share is computed once.
        """
        read = [self._encoded(prompt, answer) for answer in answers]
        known = [turns for turns in read if isinstance(turns, LearntTurns)]
        found: list[list[float]] = [[] for _ in known]
        for together in pack([turns.tokens for turns in known], AT_ONCE):
            rows = self._measured([known[place] for place in together.places])
            for place, row in zip(together.places, rows, strict=True):
                found[place] = row
        given = iter(found)
        return [next(given) if isinstance(turns, LearntTurns) else turns for turns in read]

    def _encoded(self, prompt: Sequence[Message], answer: str) -> LearntTurns | str:
        try:
            turns = encode_turns(
                self._tokenizer, [*prompt, Message(role="assistant", content=answer)], [len(prompt)], self._ends
            )
        except TurnsUnfit as error:
            return str(error)
        count = len(turns.tokens)
        return turns if count <= self._longest else f"has {count:,} tokens and the model sees {self._longest:,}"

    def _measured(self, texts: Sequence[LearntTurns]) -> list[list[float]]:
        import torch

        with torch.inference_mode():
            tree = PrefixTree.of([text.tokens for text in texts]).to(self._model.device)
            hidden_ND = body(self._model)(**tree_inputs(self._model, tree), use_cache=False).last_hidden_state[0]
            found = []
            for text, path in zip(texts, tree.paths, strict=True):
                places = torch.tensor(text.learnt, device=path.device)
                logits_TV = self._model.get_output_embeddings()(hidden_ND[path[places - 1]]).float()
                tokens_T = tree.tokens_N[path[places]]
                found.append(logits_TV.log_softmax(-1).gather(1, tokens_T[:, None])[:, 0].cpu().tolist())
        return found


def work(client: JobClient) -> Mapping[str, Any]:
    """One result per item: `{"key", "log_probs": {response id: {"sum", "mean", "tokens"}}, "problems": {response id: why}}`,
    with `each` token's log-probability if the params ask for it.
    """
    measure = Measure(whole_directory(client.assignment.models["model"], Path(client.assignment.folder) / "merged"))
    client.phase = "measuring"
    for item in client.items():
        client.store([measured(measure, item, bool(client.assignment.params["per_token"]))])
    return {}


def measured(measure: Measure, item: dict[str, Any], per_token: bool) -> dict[str, Any]:
    prompt = [Message(**message) for message in item["messages"]]
    ids = [response["id"] for response in item["responses"]]
    values = measure.of(prompt, [response["text"] for response in item["responses"]])
    pairs = list(zip(ids, values, strict=True))
    return {
        "key": item["key"],
        "log_probs": dict(_told(pairs, per_token)),
        "problems": {name: value for name, value in pairs if isinstance(value, str)},
    }


def _told(pairs: Sequence[tuple[str, list[float] | str]], per_token: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, value in pairs:
        if not isinstance(value, str):
            total = sum(value)
            told = {"sum": total, "mean": total / len(value) if value else None, "tokens": len(value)}
            yield name, {**told, **({"each": value} if per_token else {})}
