"""Sampled responses of a run, and the turns of long ones."""

from django.db import models

PROMPT_PLACE = ["run", "example_key", "step", "phase", "group", "index"]


class Rollout(models.Model):
    """One sampled response; `content` is `trainer.contracts.RolloutRecord`, the other columns are its filters.

    `part_values` has the value of each part of the reward by name, null if the part is missing.
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

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["run", "step", "phase", "group", "index"], name="one_rollout_per_place")
        ]
        # one prompt through training; with the reward, so that its steps are read from the index alone
        indexes = [models.Index(fields=PROMPT_PLACE, include=["reward"], name="rollouts_of_a_prompt")]

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
