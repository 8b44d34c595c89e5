"""A local model that answers calls: yes or no from one forward pass, or generated text."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from trainer.inference.chat import encode_prompt
from trainer.inference.local import LocalSampler
from trainer.inference.models import load_model, load_tokenizer, weights_digest
from trainer.inference.sampling import SampleRequest

from .calibration import ThresholdCalibration
from .calls import LocalCall
from .judge import LogitJudge, MarginReading

_SHIPPED = Path(__file__).parent / "calibrations"
Verdict = dict[str, Any]


class Answering:
    """The model of a directory, with the threshold that was measured for it, on `device`.

    Raises ModelInvalid for the directory, ValueError for a calibration that belongs to another model.
    """

    def __init__(self, directory: Path, calibration: ThresholdCalibration | None = None, device: str = "cpu") -> None:
        self.name, self.digest = directory.name, weights_digest(directory)
        self.calibration = calibration or shipped(self.digest)
        if self.calibration and self.calibration.digest != self.digest:
            raise ValueError(
                f"the calibration was measured on {self.calibration.model} with other weights than those in {directory}; "
                "measure it for this model with `python -m trainer judge-calibrate`"
            )
        self._tokenizer = load_tokenizer(directory)
        model = load_model(directory).to(device)
        self._judge, self._sampler = LogitJudge(model, self._tokenizer), LocalSampler(model, self._tokenizer)

    def described(self) -> dict[str, Any]:
        threshold = self.calibration.threshold if self.calibration else None
        return {"judge": "yes-no", "model": self.name, "digest": self.digest, "threshold": threshold}

    def answer(self, calls: Sequence[LocalCall], look: Callable[[], None] = lambda: None) -> list[Verdict]:
        """A verdict per call, in their order. If the model cannot take a call, its verdict has `state: failed` and says why.

        `look` is called now and then during the work; an exception of `look` ends the work.
        """
        started = time.perf_counter()
        prompts = {call.key: encode_prompt(self._tokenizer, call.asked()) for call in calls}
        verdicts = {call.key: self._too_long(call, prompts[call.key]) for call in calls}
        fitting = [call for call in calls if not verdicts[call.key]]
        verdicts |= self._yes_no([call for call in fitting if call.reply == "yes_no"], prompts)
        verdicts |= self._text([call for call in fitting if call.reply == "text"], prompts, look)
        each = round((time.perf_counter() - started) * 1000 / max(1, len(calls)), 2)
        return [{"key": call.key, **verdicts[call.key], "latency_ms": each} for call in calls]

    def _too_long(self, call: LocalCall, prompt: Sequence[int]) -> Verdict:
        longest = self._judge.longest_prompt
        needed = len(prompt) + (call.max_tokens if call.reply == "text" else 0)
        if needed <= longest:
            return {}
        message = f"the call needs {needed:,} tokens and {self.name} sees {longest:,}; shorten it or use another model"
        return {"state": "failed", "problem": "context_overflow", "message": message, "prompt_tokens": len(prompt)}

    def _yes_no(self, calls: Sequence[LocalCall], prompts: dict[str, tuple[int, ...]]) -> dict[str, Verdict]:
        readings = self._judge.read([prompts[call.key] for call in calls])
        return {call.key: self._verdict(call, reading) for call, reading in zip(calls, readings, strict=True)}

    def _verdict(self, call: LocalCall, reading: MarginReading) -> Verdict:
        # a threshold holds for the wording it was measured with; without a threshold the more likely answer is taken
        known = self.calibration if self.calibration and self.calibration.wording == call.worded else None
        return {
            "state": "done",
            "met": reading.margin > (known.threshold if known else 0.0),
            "calibrated": known is not None,
            "probability": round(reading.probability, 6),
            "margin": round(reading.margin, 6),
            "mass": round(reading.mass, 6),
            "prompt_tokens": reading.prompt_tokens,
            "cached_tokens": reading.cached_tokens,
        }

    def _text(
        self, calls: Sequence[LocalCall], prompts: dict[str, tuple[int, ...]], look: Callable[[], None]
    ) -> dict[str, Verdict]:
        requests = [
            SampleRequest(prompts[call.key], call.max_tokens, call.temperature, call.top_p, seed=call.seed)
            for call in calls
        ]
        return {
            call.key: {
                "state": "done",
                "text": result.text,
                "finish_reason": result.finish_reason,
                "prompt_tokens": len(prompts[call.key]),
                "completion_tokens": len(result.tokens),
            }
            for call, result in zip(calls, self._sampler.sample(requests, lambda *_: look()), strict=True)
        }


def shipped(digest: str) -> ThresholdCalibration | None:
    """The calibration that comes with the product for a model with these weights; None if there is none."""
    known = (ThresholdCalibration.load(path) for path in sorted(_SHIPPED.glob("*.json")))
    return next((each for each in known if each.digest == digest), None)
