"""Notes that people write on tokens of a sampled response."""

from django.db import models


class TokenNote(models.Model):
    """A note on the tokens `start <= t < end` of the response at this place of the run.

    `quote` is the text of these tokens when the note was written. A response that is sampled again, or decoded in another way, has other
    tokens there: the note then says what it was about and marks nothing. `revision` counts changes of the text, so that of two changes
    that began from the same text one is refused.
    """

    run = models.ForeignKey("experiments.Run", on_delete=models.CASCADE, related_name="token_notes", db_index=False)
    step = models.PositiveIntegerField()
    phase = models.CharField(max_length=8)
    group = models.PositiveIntegerField()
    index = models.PositiveIntegerField()
    start = models.PositiveIntegerField()
    end = models.PositiveIntegerField()
    quote = models.TextField()
    text = models.TextField()
    revision = models.PositiveIntegerField(default=1)
    launch_key = models.CharField(max_length=64, null=True, blank=True)  # noqa: DJ001 null: nothing to be unique with
    launch_digest = models.CharField(max_length=64, blank=True)  # of what was asked for with the key
    created_by = models.ForeignKey("accounts.User", null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    changed_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["created_by", "launch_key"], name="one_token_note_per_key_of_a_person"),
            models.CheckConstraint(condition=models.Q(start__lt=models.F("end")), name="a_token_note_has_tokens"),
        ]
        indexes = [
            models.Index(fields=["run", "step", "phase", "id"], name="token_notes_of_a_step"),
            models.Index(fields=["run", "-id"], name="token_notes_of_a_run"),
        ]

    def __str__(self) -> str:
        return f"note on {self.phase} {self.step}/{self.group}/{self.index} of run {self.run_id}"
