"""From a resolved config to a finished run: put the parts together, run the loop, say how it ended."""

import os
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from trainer.config import PolicyConfig
from trainer.config.memory import is_shortage
from trainer.inference.sampling import EngineLost
from trainer.monitors import RunMonitor

from .errors import AttemptAbandoned, RunFailed, StopRequested

_TRACEBACK_LINES = 12
LoopOf = Callable[[Any], "PolicyLoop"]  # noqa: F821 - imported below, after the config and the files have been checked
Learners = Callable[[Path | None], tuple[Any, Any]]
"""Makes a learner and its updater outside this process, given the directory of the teacher."""


def run_policy(
    config: PolicyConfig,
    examples: Path,
    model_dir: Path,
    run_dir: Path,
    monitor: RunMonitor,
    resume: bool,
    teacher_dir: Path | None = None,
    loop_of: LoopOf | None = None,
    learners: Learners | None = None,
) -> bool:
    """Runs to an end that the monitor has been told of. True: finished or stopped; False: failed or abandoned.

    `loop_of` makes the loop out of its parts; left out, it is the synchronous one. `learners` makes what is trained where
    several processes train it; left out, it is in this process.
    """
    loop = None
    try:
        monitor.state("running")
        loop = _build(config, examples, model_dir, run_dir, monitor, resume, teacher_dir, loop_of, learners)
        summary = loop.run()
        monitor.state("finished", step=loop.step, summary=summary)
        return True
    except StopRequested:
        step = loop.step if loop else 0
        monitor.state("stopped", f"Stopped after step {step}", step=step, summary=loop.summary if loop else None)
        return True
    except AttemptAbandoned:
        return False
    except Exception as error:
        step = loop.step if loop else 0
        monitor.log(_last_lines(error), step, level="error")
        monitor.state("failed", explain(error, config), step=step)
        return False
    finally:
        if loop:
            loop.parts.sampler.close()
            loop.parts.learner.close()


def explain(error: BaseException, config: PolicyConfig) -> str:
    """What a person can do about it; for memory, what to lower."""
    text = str(error) or type(error).__name__
    if isinstance(error, MemoryError) or is_shortage(text):
        return f"Out of memory. What helps: {config.memory_knobs()}."
    if isinstance(error, EngineLost):
        return f"{text}. Nothing is lost: resume the run from its last checkpoint."
    known = isinstance(error, RunFailed | ValueError | OSError)
    return text if known else f"{type(error).__name__}: {text}"


def _build(
    config: PolicyConfig,
    examples: Path,
    model_dir: Path,
    run_dir: Path,
    monitor: RunMonitor,
    resume: bool,
    teacher_dir: Path | None,
    loop_of: LoopOf | None,
    learners: Learners | None,
) -> "PolicyLoop":  # noqa: F821 - imported below, after the config and the files have been checked
    from .data import prepare_prompts, read_examples

    rows = read_examples(examples)
    monitor.progress(0, "loading", 0, 1, None)
    from trainer.inference.build import build_sampler
    from trainer.inference.models import best_device, load_model, load_tokenizer

    from .learner import Learner
    from .parts import Parts
    from .policy import PolicyLoop

    _settle_arithmetic()
    tokenizer = load_tokenizer(model_dir)
    prompts = prepare_prompts(rows, tokenizer, config.data.max_prompt_tokens, config.evaluation.max_examples)
    for line in prompts.left_out:
        monitor.log(line, level="warning")
    if not prompts.heldout and config.evaluation.max_examples:
        monitor.log("no example is held out, so there is no evaluation", level="warning")
    teacher, updater = _teacher(config, teacher_dir, tokenizer), None
    if learners is None:
        learner = Learner(load_model(model_dir, config.model.dtype).to(best_device()), config)
    else:
        learner, updater = learners(teacher_dir if teacher else None)
    sampler = build_sampler(config, model_dir, tokenizer)
    parts = Parts(config, prompts, tokenizer, sampler, learner, monitor, run_dir, teacher, updater)
    loop = (loop_of or PolicyLoop)(parts)
    monitor.log(
        f"{len(prompts.train)} training and {len(prompts.heldout)} held-out prompts; "
        f"{learner.size:,} trained parameters"
    )
    if resume and loop.resume():
        monitor.log(f"resumed after step {loop.step}", loop.step)
    return loop


def _teacher(config: PolicyConfig, teacher_dir: Path | None, tokenizer: Any) -> "Teacher | None":  # noqa: F821 - as above
    """The model of objective `distill`. Raises RunFailed when there is none, or when it speaks in other tokens."""
    if config.objective.name != "distill":
        return None
    if teacher_dir is None:
        raise RunFailed("objective 'distill' needs the directory of a teacher (--teacher on the command line)")
    from trainer.inference.models import best_device, load_model, load_tokenizer

    from .learner import Teacher

    if load_tokenizer(teacher_dir).get_vocab() != tokenizer.get_vocab():
        raise RunFailed(
            f"the teacher in {teacher_dir} has another tokenizer than the model: its log-probabilities are of other "
            "tokens. Choose a teacher of the same family."
        )
    return Teacher(load_model(teacher_dir, config.model.dtype).to(best_device()))


def _settle_arithmetic() -> None:
    """The same number of threads gives the same sums: `OMP_NUM_THREADS` or all cores, and no non-deterministic kernels."""
    import torch

    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS") or len(os.sched_getaffinity(0))))
    # Some kernels of a GPU have no deterministic form (sums along a row, attention's gradient): there torch only warns.
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(True, warn_only=torch.cuda.is_available())
    # Filling fresh memory would only help to find reads of it; it costs a pass over every tensor.
    torch.utils.deterministic.fill_uninitialized_memory = False


def _last_lines(error: BaseException) -> str:
    lines = "".join(traceback.format_exception(error)).rstrip().splitlines()
    return "\n".join(lines[-_TRACEBACK_LINES:])
