"""Sampled responses of a run, the turns of long ones, and the index of the words of both."""

from django.db import models
from django.db.models.functions import Coalesce

PROMPT_PLACE = ["run", "example_key", "step", "phase", "group", "index"]
STORED = Coalesce("stored_again", "id", output_field=models.BigIntegerField())
"""A number that grows with each rollout that is stored in a run, also with one that replaces another: both are drawn from one sequence."""


class Rollout(models.Model):
    """One sampled response; `content` is `trainer.contracts.RolloutRecord`, the other columns are its filters.

    `part_values` has the value of each part of the reward by name, null if the part is missing. `stored_again` is null until a resumed run
    repeats the step: the rollout keeps its id, and takes the one that a new row would have got as its place in the order of storing (STORED).
    """

    run = models.ForeignKey("experiments.Run", on_delete=models.CASCADE, related_name="rollouts", db_index=False)
    step = models.PositiveIntegerField()
    phase = models.CharField(max_length=8)
    group = models.PositiveIntegerField()
    index = models.PositiveIntegerField()
    example_key = models.CharField(max_length=200)
    reward = models.FloatField(null=True)
    advantage = models.FloatField(null=True)
    excluded = models.BooleanField(default=False, db_default=False)
    part_values = models.JSONField(default=dict, db_default=models.Value({}, models.JSONField()))
    content = models.JSONField()
    stored_again = models.BigIntegerField(null=True, editable=False)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["run", "step", "phase", "group", "index"], name="one_rollout_per_place")
        ]
        indexes = [
            # one prompt through training; with the reward, so that its steps are read from the index alone
            models.Index(fields=PROMPT_PLACE, include=["reward"], name="rollouts_of_a_prompt"),
            models.Index("run", STORED, name="rollouts_as_stored"),
        ]

    def __str__(self) -> str:
        return f"{self.phase} {self.step}/{self.group}/{self.index}"


class EpisodeTurn(models.Model):
    """A turn of an episode that was too large for its record, or a part of the turn's text (`trainer.contracts.TurnPart`).

    The turns of a rollout are those of its place with a number below its `turns_apart`. `excerpt` and `size` stand beside the text, so that
    a list of turns reads no texts, which lie elsewhere on the disk.
    """

    run = models.ForeignKey("experiments.Run", on_delete=models.CASCADE, related_name="episode_turns", db_index=False)
    step = models.PositiveIntegerField()
    phase = models.CharField(max_length=8)
    group = models.PositiveIntegerField()
    index = models.PositiveIntegerField()
    number = models.PositiveIntegerField()
    part = models.PositiveIntegerField()
    author = models.CharField(max_length=8)
    kind = models.CharField(max_length=12)
    tool = models.CharField(max_length=200, blank=True)
    call = models.CharField(max_length=200, blank=True)
    failed = models.BooleanField(default=False)
    tokens = models.PositiveIntegerField()
    seconds = models.FloatField(null=True)
    reward = models.FloatField(null=True)
    size = models.PositiveIntegerField()  # characters of `text`
    excerpt = models.CharField(max_length=200, blank=True)
    text = models.TextField(blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["run", "step", "phase", "group", "index", "number", "part"], name="one_part_per_turn"
            )
        ]

    def __str__(self) -> str:
        return f"turn {self.number} of {self.phase} {self.step}/{self.group}/{self.index}"


class WordBlock(models.Model):
    """Rollouts of one run that were stored one after the other, whose words are in the index (`indexing`). `places` are their numbers (STORED)
    in order, eight bytes each; `first` and `last` are the ends, `hits` is how many words they have. Blocks of a run do not overlap. Workers
    make and merge them from rollouts alone."""

    run = models.ForeignKey("experiments.Run", on_delete=models.CASCADE, related_name="word_blocks", db_index=False)
    first = models.BigIntegerField()
    last = models.BigIntegerField()
    size = models.PositiveIntegerField()
    hits = models.PositiveIntegerField()
    places = models.BinaryField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "first"], name="one_word_block_from_a_rollout")]

    def __str__(self) -> str:
        return f"{self.first}-{self.last}"


class BlockWords(models.Model):
    """Neighbouring words of a block, each with the rollouts that have it, as `blocks` packs them; `number` is that of the first word."""

    pk = models.CompositePrimaryKey("block_id", "number")
    block = models.ForeignKey(
        WordBlock, on_delete=models.CASCADE, related_name="words", db_index=False, db_constraint=False
    )
    number = models.IntegerField()
    packed = models.BinaryField()

    def __str__(self) -> str:
        return f"{self.number} in block {self.block_id}"
