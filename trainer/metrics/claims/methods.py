"""The methods of the papers that the product offers: what each is, what its authors claim, and which plan tests it. Torch-free."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Method:
    """A method. `recipe` trains it, with the values of `at` by dotted path above the defaults (an empty text: the section is off), or
    `evaluation` measures it.
    `plans` test its claim.
    """

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
        "If only the verdict is rewarded, a judge becomes more accurate, but its reasons agree less with people's. "
        "The product raises both.",
        "Rationale Consistency / MetaJudge (2025)",
        recipe="judge",
        at={"reward.arm": "hybrid"},
        plans=("rationale",),
    ),
    Method(
        "judge_policy",
        "A trained judge as the reward",
        "A policy learns from a judge that was itself trained: its answer is compared with a reference, in both orders.",
        "A policy trained with a judge that was rewarded for its reasons too is better than one trained with a judge of verdicts alone.",
        "Rationale Consistency / MetaJudge (2025)",
        recipe="policy",
        at={"scaffold": ""},
        plans=("judge_policy",),
    ),
    Method(
        "rationale_consistency",
        "Rationale consistency",
        "The share of people's reasons that a judge gives, by the best one-to-one matching, beside its accuracy.",
        "Judges of equal accuracy differ in consistency. A judge with high accuracy and low consistency is right for "
        "the wrong reasons.",
        "Rationale Consistency / MetaJudge (2025)",
        evaluation="metajudge",
    ),
    Method(
        "rubricbench",
        "RubricBench",
        "Pairs are judged without a rubric, with the judge's own, and with people's. Written rubrics are also "
        "compared with people's.",
        "Accuracy is highest with people's rubrics and lowest without any. The gap between people's and the judge's "
        "own shows what can be learned.",
        "RubricBench (2026)",
        evaluation="rubricbench",
    ),
    Method(
        "mams",
        "Rubric writers",
        "A model writes weighted rubrics. It is rewarded if they rank two answers as people did, for their quality, "
        "and for their form.",
        "Rewards for preference and quality together separate preferred from other answers further (Cohen's d) than "
        "either alone.",
        "MaMs (2026)",
        recipe="rubric_writer",
        at={"data.form": "mams", "reward.by": "likert"},
        plans=("mams", "rubric_pairs"),
    ),
    Method(
        "rubric_arm_writer",
        "Rubric writers by a judge's choice",
        "Only the writer learns: it writes hard rules and principles, and is rewarded if a frozen judge chooses by "
        "them the answer that people preferred.",
        "A writer's reward depends on how its judge uses rubrics. The paper trains the judge too; *Judge and rubric "
        "writer in turns* tests what this adds.",
        "Rubric-ARM (2026)",
        recipe="rubric_writer",
        at={"data.form": "rubric_arm", "reward.by": "choice", "reward.format_weight": "0"},
    ),
    Method(
        "rubric_arm",
        "Judge and rubric writer in turns",
        "A writer of rubrics and a judge that uses them learn from the same comparisons. While one learns, the other "
        "stays as it is.",
        "Training the judge first is better than the writer first, and this is better than training without a reward "
        "for the form. The writer's gradient is noisier.",
        "Rubric-ARM (2026)",
        recipe="alternating",
        at={"first": "judge"},
        plans=("rubric_arm",),
    ),
    Method(
        "ruscarl",
        "RuscaRL",
        "While sampling, the prompt shows a part of the rubric: less for each further response of a group, and less "
        "and less during training.",
        "A higher held-out score than rubric RL without a scaffold or with all of it; entropy rises, then falls.",
        "Breaking the Exploration Bottleneck (Zhou et al., 2025)",
        recipe="policy",
        at={"scaffold.group": "linear", "scaffold.step": "sigmoid"},
        plans=("ruscarl", "ruscarl_shape"),
    ),
    Method(
        "oapl",
        "OAPL",
        "Log-probability ratios are fitted to rewards by regression, which needs no fresh responses: weights are "
        "pushed every 50 steps.",
        "More stable and a higher pass@k than importance-corrected GRPO at lag 1; its entropy does not collapse.",
        "LLMs Can Learn to Reason Via Off-Policy RL (2026)",
        recipe="policy",
        at={"objective.name": "oapl", "runner.push_every": "50"},
        plans=("oapl", "oapl_offline"),
    ),
    Method(
        "gspo",
        "GSPO",
        "The ratio of a whole response, the mean over its tokens, is clipped instead of each token's ratio.",
        "More stable than token ratios, above all for mixtures of experts.",
        "Group Sequence Policy Optimization (Zheng et al., 2025)",
        recipe="policy",
        at={"objective.name": "gspo"},
    ),
    Method(
        "dapo",
        "DAPO",
        "GRPO with a higher upper clip, equal weights for all tokens of the batch, and replacement of flat groups.",
        "Entropy does not collapse, and long responses count in proportion.",
        "DAPO (Yu et al., 2025)",
        recipe="policy",
        at={"objective.name": "dapo", "rollout.replace_flat": "1"},
        plans=("budgets",),
    ),
    Method(
        "budget",
        "Dynamic budget",
        "The responses of a step go to the prompts that teach most, judged by how often the run has solved each.",
        "The same rollouts teach more, because fewer are spent on prompts that are solved or out of reach.",
        "LongCat-Flash-Thinking-2601 (2026)",
        recipe="policy",
        at={"rollout.budget.value": "learning"},
        plans=("budgets",),
    ),
    Method(
        "stages",
        "Two stages",
        "Prompts of moderate difficulty come first. Once the reward has reached a plateau, prompts follow that were hardly"
        " ever solved.",
        "The score keeps rising when it would reach a plateau with one stage.",
        "GLM-4.5 (2025)",
        recipe="policy",
        plans=("stages", "stages_near"),
    ),
    Method(
        "ahrl",
        "Hints that fade",
        "While sampling, the prompt shows the beginning of the reference reasoning: less of it with each step and "
        "pass.",
        "Problems that the policy cannot solve by itself come within reach.",
        "ERNIE 5.0 (2026)",
        recipe="policy",
        at={"scaffold": "", "hint.p0": "0.5"},
        plans=("hints",),
    ),
    Method(
        "toggle",
        "Toggle",
        "For some steps a correct response is rewarded only within its prompt's length budget; for as many steps "
        "after that, at any length.",
        "25 to 30% fewer tokens at the same score, and length does not become a limit where it is needed.",
        "Kimi K2.5 (2026)",
        recipe="policy",
        plans=("toggle", "toggle_smollm"),
    ),
    Method(
        "wpsm",
        "Mask of well-learned responses",
        "If the policy mostly solves a prompt, responses about which it is sure count less.",
        "The policy keeps its entropy, and learns more from what it has not solved.",
        "ERNIE 5.0 (2026): WPSM",
        recipe="policy",
        at={"well_learned.tau": "0.8", "scaffold": ""},
        plans=("wpsm",),
    ),
    Method(
        "icepop",
        "IcePop",
        "The loss leaves out tokens on which trainer and sampler disagree too much.",
        "Training stays stable if trainer and sampler compute the same weights differently.",
        "GLM-5 (2026)",
        recipe="policy",
        at={"objective.name": "icepop", "scaffold": ""},
        plans=("quantized", "wpsm"),
    ),
    Method(
        "misc",
        "MISC",
        "GSPO's sequence term times the mean over tokens of IcePop's weights.",
        "Training is stable when it is not with IcePop's mask by whole sequences.",
        "ERNIE 5.0 (2026)",
        recipe="policy",
        at={"objective.name": "misc", "scaffold": ""},
        plans=("wpsm",),
    ),
    Method(
        "urb",
        "U-RB",
        "Workers sample ahead while the learner trains. Each step trains on its own prompts, in the order of the data.",
        "Long responses are trained on as often as they come. Schedules that take the first to finish prefer short "
        "ones.",
        "ERNIE 5.0 (2026)",
        recipe="policy",
        at={"runner.kind": "async", "runner.policy": "urb", "objective.name": "double_sided", "scaffold": ""},
        plans=("tails", "tails_still"),
    ),
    Method(
        "double_sided",
        "Double-sided importance sampling",
        "The ratio to the sampler itself is the weight of each token, and 0 outside two bounds. The trainer needs no "
        "second pass.",
        "Asynchronous training of agents stays stable without keeping old weights.",
        "GLM-5 (2026)",
        recipe="policy",
        at={"objective.name": "double_sided", "scaffold": ""},
        plans=("stale",),
    ),
    Method(
        "kimi",
        "Kimi K2.5's objective",
        "Clipped ratios times centred rewards, and a squared pull to the sampler.",
        "Limits off-policy drift in long-horizon training of agents.",
        "Kimi K2.5 (2026)",
        recipe="policy",
        at={"objective.name": "kimi", "scaffold": ""},
    ),
    Method(
        "distill",
        "On-policy distillation",
        "The student samples. The advantage of a token is the teacher's log-probability minus the student's.",
        "Skills of earlier stages are recovered after later stages.",
        "GLM-5 (2026)",
        recipe="policy",
        at={"objective.name": "distill", "rollout.group_size": "1"},
    ),
    Method(
        "cross_stage",
        "Cross-stage distillation",
        "One domain is learned after the other. Then the policies of both stages teach one policy, each on the "
        "prompts of its own domain.",
        "The policy regains what the second stage made it forget, and keeps the skill of the second stage.",
        "GLM-5 (2026)",
        recipe="chain",
        plans=("cross_stage", "cross_stage_learnt"),
    ),
    Method(
        "self_distil",
        "Iterative self-distillation",
        "RL, then supervised training of the untrained model on the policy's best answers, then RL again.",
        "The second round of RL begins higher and ends higher than RL alone does.",
        "GLM-4.5 (2025)",
        recipe="chain",
        plans=("self_distil",),
    ),
    Method(
        "kcenter",
        "K-center selection",
        "A tenth of the data: each pick is hard for the model and far from the earlier picks.",
        "A tenth chosen in this way teaches more than a random tenth, and about as much as all data.",
        "LongCat-Flash-Thinking-2601 (2026)",
        recipe="sft",
        at={"data.select": "cover"},
        plans=("kcenter",),
    ),
    Method(
        "remax",
        "ReMax with a judge of pairs",
        "A sample is compared with the greedy response. Its advantage is its reward minus that of the greedy response.",
        "One sample a prompt is enough for a baseline, so it costs less than a group.",
        "ReMax (Li et al., 2023); with a judge of pairs: Rubric-ARM (2026)",
        recipe="policy",
        at={"objective.name": "grpo", "objective.advantage": "remax"},
    ),
    Method(
        "reward_model",
        "Scalar reward model",
        "A response gets one number, and the preferred response gets the higher one, by the model of Bradley and "
        "Terry.",
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
        "Conversations are learned as they are; wrong turns stay in the context and are masked.",
        "Other methods begin with it: rubric writers and judges need the form before a reward can help.",
        "Turn-level loss mask: GLM-5 (2026)",
        recipe="sft",
    ),
)
