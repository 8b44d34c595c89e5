"""Prompts as models need them, and responses as people read them."""

from collections.abc import Sequence
from typing import Any

from trainer.contracts import Message


def encode_prompt(tokenizer: Any, messages: Sequence[Message]) -> tuple[int, ...]:
    """Token ids of a conversation up to where the assistant speaks. The template itself adds all special tokens."""
    conversation = [message.model_dump() for message in messages]
    text = tokenizer.apply_chat_template(conversation, add_generation_prompt=True, tokenize=False)
    return tuple(tokenizer(text, add_special_tokens=False)["input_ids"])


def with_addition(messages: Sequence[Message], addition: str) -> tuple[Message, ...]:
    """The conversation with a paragraph added to its last user message. Raises ValueError if there is none."""
    for place in reversed(range(len(messages))):
        if messages[place].role == "user":
            extended = Message(role="user", content=f"{messages[place].content}\n\n{addition}")
            return (*messages[:place], extended, *messages[place + 1 :])
    raise ValueError("the prompt has no user message to add the scaffold to")


def response_text(tokenizer: Any, tokens: Sequence[int], stop: Sequence[str] = ()) -> str:
    """The text of the tokens, without special tokens and up to the first text of `stop`."""
    text = str(tokenizer.decode(list(tokens), skip_special_tokens=True))
    for ending in stop:
        text = text.partition(ending)[0]
    return text
