"""The score of a reward model."""

from collections.abc import Sequence

from trainer.config.rewards.parts import RewardModelPart

from ..parts import Item, Part, Services, part_of_answer


async def reward_model(part: RewardModelPart, items: Sequence[Item], services: Services) -> list[Part]:
    conversations = [
        [*((message.role, message.content) for message in item.example.prompt), ("assistant", item.response)]
        for item in items
    ]
    scores = await services.models[part.model].score(conversations, part.max_tokens)
    return [Part(None, score) if isinstance(score, str) else part_of_answer(score) for score in scores]
