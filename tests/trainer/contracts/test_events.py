"""Records of runs as earlier programs wrote them."""

from trainer.contracts import RolloutRecord, TokenStretch

WRITTEN = (
    '{"phase": "train", "example_key": "k", "group": 0, "index": 1, "prompt": "p", "response": "r",'
    ' "finish_reason": "stop", "tokens": ["a", "b"], "logprobs": [-0.5, -0.25], "mask": [1.0, 1.0],'
    ' "spans": [{"version": 3, "start": 0, "end": 1}, {"version": 4, "start": 1, "end": 2}]}'
)


def test_which_weights_sampled_is_read_under_its_earlier_name() -> None:
    record = RolloutRecord.model_validate_json(WRITTEN)
    assert record.stretches == (TokenStretch(version=3, start=0, end=1), TokenStretch(version=4, start=1, end=2))
    again = record.model_dump(mode="json")
    assert "spans" not in again and RolloutRecord.model_validate(again) == record
