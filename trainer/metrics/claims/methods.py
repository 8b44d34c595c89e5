"""The methods of the papers that the product offers: what each is, what its authors claim, and where it is tried. Torch-free."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Method:
    """`recipe` trains it, with the values of `at` by dotted path above the defaults (no text: the section is off), or `evaluation` measures it. `plans` put its
    claim to the test."""

    name: str
    title: str
    what: str
    claim: str
    paper: str
    recipe: str = ""
    evaluation: str = ""
    at: Mapping[str, str] = field(default_factory=dict)
    plans: tuple[str, ...] = ()


METHODS: tuple[Method, ...] = (
    Method(
        "rationale",
        "Judges that are right for the right reasons",
        "A judge of pairs is rewarded for its verdict times the average precision of its reasons, measured on people's.",
        "Rewarded for the verdict alone, a judge becomes more accurate and its reasons less people's; the product raises both.",
        "Rationale Consistency / MetaJudge (2025)",
        recipe="judge",
        at={"reward.arm": "hybrid"},
        plans=("rationale",),
    ),
    Method(
        "rationale_consistency",
        "Rationale consistency",
        "How many of people's reasons a judge gives, by the best one-to-one matching, beside how often it is right.",
        "Judges of equal accuracy differ in it: low consistency at high accuracy is being right for the wrong reasons.",
        "Rationale Consistency / MetaJudge (2025)",
        evaluation="metajudge",
    ),
    Method(
        "rubricbench",
        "RubricBench",
        "Pairs judged without a rubric, with one that the judge wrote, and with people's; and how far the written ones are people's.",
        "Accuracy is highest with people's rubrics and lowest without any. The gap to the judge's own is what there is to learn.",
        "RubricBench (2026)",
        evaluation="rubricbench",
    ),
    Method(
        "mams",
        "Rubric writers",
        "A model writes weighted rubrics, rewarded where they rank two answers as people did, for their quality and for their form.",
        "Preference and quality together hold preferred and other answers further apart (Cohen's d) than either alone.",
        "MaMs (2026)",
        recipe="rubric_writer",
        at={"data.form": "mams", "reward.by": "likert"},
        plans=("mams",),
    ),
    Method(
        "rubric_arm_writer",
        "Rubric writers by a judge's choice",
        "Hard rules and principles, rewarded where a frozen judge that compares by them chooses what people preferred.",
        "Judge and writer trained in turns, the judge first, beat the other order, and beat training without a reward for form.",
        "Rubric-ARM (2026)",
        recipe="rubric_writer",
        at={"data.form": "rubric_arm", "reward.by": "choice", "reward.format_weight": "0"},
    ),
    Method(
        "rubric_arm",
        "Judge and rubric writer in turns",
        "A writer of rubrics and a judge that uses them learn from the same comparisons, each while the other holds still.",
        "The judge first beats the writer first, which beats training without a reward for form; the writer's gradient is the noisier.",
        "Rubric-ARM (2026)",
        recipe="alternating",
        at={"first": "judge"},
        plans=("rubric_arm",),
    ),
    Method(
        "ruscarl",
        "RuscaRL",
        "Part of the rubric stands in the prompt while sampling, less for each response of a group and less as training goes on.",
        "A higher held-out score than rubric RL without a scaffold or with all of it; entropy rises, then falls.",
        "Breaking the Exploration Bottleneck (Zhou et al., 2025)",
        recipe="policy",
        at={"scaffold.group": "linear", "scaffold.step": "sigmoid"},
        plans=("ruscarl",),
    ),
    Method(
        "oapl",
        "OAPL",
        "A regression of log-probability ratios on rewards, which needs no fresh responses: weights are pushed every 50 steps.",
        "More stable and a higher pass@k than importance-corrected GRPO at lag 1; its entropy does not collapse.",
        "LLMs Can Learn to Reason Via Off-Policy RL (2026)",
        recipe="policy",
        at={"objective.name": "oapl", "runner.push_every": "50"},
        plans=("oapl", "oapl_offline"),
    ),
    Method(
        "gspo",
        "GSPO",
        "The ratio of whole responses, by the mean over their tokens, is clipped instead of each token's.",
        "More stable than token ratios, above all for mixtures of experts.",
        "Group Sequence Policy Optimization (Zheng et al., 2025)",
        recipe="policy",
        at={"objective.name": "gspo"},
    ),
    Method(
        "dapo",
        "DAPO",
        "GRPO with a higher upper clip, tokens weighed alike over the batch, and flat groups replaced.",
        "Entropy does not collapse, and long responses count in proportion.",
        "DAPO (Yu et al., 2025)",
        recipe="policy",
        at={"objective.name": "dapo", "rollout.replace_flat": "1"},
        plans=("budgets",),
    ),
    Method(
        "budget",
        "Dynamic budget",
        "The responses of a step go to the prompts where they are worth most, by how often the run has solved each.",
        "The same rollouts teach more, because fewer are spent on prompts that are solved or out of reach.",
        "LongCat-Flash-Thinking-2601 (2026)",
        recipe="policy",
        at={"rollout.budget.value": "learning"},
        plans=("budgets",),
    ),
    Method(
        "stages",
        "Two stages",
        "Prompts of moderate difficulty first; once the reward has levelled off, those that were hardly ever solved.",
        "The score goes on rising where one stage levels off.",
        "GLM-4.5 (2025)",
        recipe="policy",
        plans=("stages",),
    ),
    Method(
        "ahrl",
        "Hints that fade",
        "The prompt shows the beginning of the reference reasoning while sampling, less of it with each step and pass.",
        "Problems that the policy cannot solve by itself come within reach.",
        "ERNIE 5.0 (2026)",
        recipe="policy",
        at={"scaffold": "", "hint.p0": "0.5"},
        plans=("hints",),
    ),
    Method(
        "icepop",
        "IcePop",
        "Tokens on which trainer and sampler disagree too much leave the loss.",
        "Training stays stable where the two compute the same weights differently.",
        "GLM-5 (2026)",
        recipe="policy",
        at={"objective.name": "icepop", "scaffold": ""},
    ),
    Method(
        "misc",
        "MISC",
        "GSPO's sequence term times the mean over tokens of IcePop's weights.",
        "Stable where IcePop's mask by whole sequences is not.",
        "ERNIE 5.0 (2026)",
        recipe="policy",
        at={"objective.name": "misc", "scaffold": ""},
    ),
    Method(
        "double_sided",
        "Double-sided importance sampling",
        "The ratio to the sampler itself weighs each token, and is zero outside two bounds: no second pass of the trainer.",
        "Asynchronous training of agents stays stable without keeping old weights.",
        "GLM-5 (2026)",
        recipe="policy",
        at={"objective.name": "double_sided", "scaffold": ""},
    ),
    Method(
        "kimi",
        "Kimi K2.5's objective",
        "Clipped ratios times centred rewards, and a squared pull to the sampler.",
        "Holds off-policy drift in long-horizon training of agents.",
        "Kimi K2.5 (2026)",
        recipe="policy",
        at={"objective.name": "kimi", "scaffold": ""},
    ),
    Method(
        "distill",
        "On-policy distillation",
        "The student samples, and the teacher's log-probability less its own is each token's advantage.",
        "What earlier stages could do is recovered after later ones.",
        "GLM-5 (2026)",
        recipe="policy",
        at={"objective.name": "distill", "rollout.group_size": "1"},
    ),
    Method(
        "remax",
        "ReMax with a judge of pairs",
        "A sample is compared with the greedy response, and its reward less that one's is the advantage.",
        "One sample a prompt is enough for a baseline, so it costs less than a group.",
        "ReMax (Li et al., 2023); with a judge of pairs: Rubric-ARM (2026)",
        recipe="policy",
        at={"objective.name": "grpo", "objective.advantage": "remax"},
    ),
    Method(
        "reward_model",
        "Scalar reward model",
        "One number for a response, so that the preferred one has the higher, by the model of Bradley and Terry.",
        "A cheap reward for training and for choosing the best of n.",
        "Bradley and Terry (1952)",
        recipe="reward_model",
    ),
    Method(
        "dpo",
        "DPO",
        "A policy learns from preferred and other responses, without a reward model and without sampling.",
        "As good as RL from a reward model on the same preferences, and simpler.",
        "Direct Preference Optimization (Rafailov et al., 2023)",
        recipe="dpo",
    ),
    Method(
        "iterative_dpo",
        "Iterative DPO",
        "The policy samples two responses, a judge labels them in both orders, and DPO learns from the pairs that agree.",
        "Labelling with a rubric-trained judge beats labelling with a scalar reward model.",
        "Rubric-ARM (2026)",
        recipe="iterative_dpo",
    ),
    Method(
        "sft",
        "Supervised fine-tuning",
        "Conversations are learned as they stand; wrong turns keep their place and are masked.",
        "The start of everything else: rubric writers and judges need the form before a reward can help.",
        "Turn-level loss mask: GLM-5 (2026)",
        recipe="sft",
    ),
)
