"""`python -m trainer COMMAND`: each command has the name of its function, which is imported when the command is called."""

import importlib
import sys

from trainer.process import settle

COMMANDS = {
    "run": ("trainer.cli", "run", "train without a server"),
    "shared": ("trainer.shared", "shared", "several runs of one base model in one process"),
    "models": ("trainer.cli", "models", "make a model directory"),
    "job": ("trainer.ray_jobs.entry", "job", "the run that the server has assigned to this process"),
    "weights-job": ("trainer.weights.command", "main", "generate, score or export, as the server has assigned"),
    "sampler-server": ("trainer.cli", "sampler_server", "a vLLM server for runs with sampler.kind vllm_server"),
    "claims": ("trainer.claims.command", "main", "does a paper's central claim hold here"),
    "rollouts": ("trainer.rollout_export", "rollouts", "what a run has sampled, as examples to train on"),
    "simulate": ("trainer.simulator.command", "main", "schedules of a cluster on a virtual clock"),
    "match": ("trainer.matching", "match", "items of independent lists that mean the same"),
    "diversity": ("trainer.response_measures", "diversity", "how far apart in meaning responses to one prompt are"),
    "novelty": ("trainer.response_measures", "novelty", "how much likelier responses are than before training"),
    "try-model": ("trainer.weights.trial", "try_model", "can a model be trained, and by which path"),
    "model-server": ("trainer.serving.command", "main", "answer on a socket with a model that people try"),
    "judge-local": ("trainer.logit_judge.command", "judge_local", "answer judge calls with a model on this machine"),
    "judge-calibrate": (
        "trainer.logit_judge.command",
        "judge_calibrate",
        "choose the threshold of yes from known verdicts",
    ),
    "formula": ("trainer.formulas.command", "main", "a reward, a budget or another formula on numbers from a file"),
    "objective": ("trainer.objectives.calculator", "main", "an objective on numbers from a file"),
}


def main(arguments: list[str]) -> int:
    if not arguments or arguments[0] not in COMMANDS:
        lines = [f"  {name:16} {text}" for name, (_, _, text) in COMMANDS.items()]
        print("usage: python -m trainer COMMAND ...\n" + "\n".join(lines), file=sys.stderr)
        return 2
    settle()
    module, function, _ = COMMANDS[arguments[0]]
    return int(getattr(importlib.import_module(module), function)(arguments[1:]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
