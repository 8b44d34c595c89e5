"""The objectives for pages: name, formula, paper, knobs. It needs no torch.

Formulas are LaTeX, written as what is minimised. Notation: y_i the i-th of G responses, |y_i| its generated tokens,
A advantage, pi the policy being trained, pi_old the trainer's policy at the start of the update, pi_roll the sampler's.
"""

from dataclasses import dataclass, field
from typing import Literal

from . import knobs

Input = Literal["logp_old", "logp_roll", "logp_ref", "logp_teacher", "rewards", "chosen", "rejected"]


@dataclass(frozen=True)
class ObjectiveEntry:
    """`when` says when to choose it. `needs` are the inputs beside `logp` and `mask`; `needs_with` those that a knob switches on."""

    name: str
    title: str
    family: Literal["policy", "preference", "supervised"]
    summary: str
    when: str
    formula: str
    paper: str
    parameters: type[knobs.Parameters]
    needs: tuple[Input, ...]
    needs_with: dict[str, Input] = field(default_factory=dict)

    def inputs(self, params: knobs.Parameters) -> tuple[str, ...]:
        """All inputs that the objective reads with these parameters."""
        return self.needs + tuple(name for knob, name in self.needs_with.items() if getattr(params, knob))


_CLIP = r"\min\left(\rho A_i,\ \operatorname{clip}(\rho, 1-\varepsilon_l, 1+\varepsilon_h)\, A_i\right)"
_CLIP_S = r"\min\left(s_i A_i,\ \operatorname{clip}(s_i, 1-\varepsilon_l, 1+\varepsilon_h)\, A_i\right)"
_RHO = r"\rho = \frac{\pi(y_{i,t})}{\pi_{old}(y_{i,t})}"
_S = r"s_i = \exp\Big(\frac{1}{|y_i|}\sum_t \log\frac{\pi(y_{i,t})}{\pi_{old}(y_{i,t})}\Big)"
_POP = (
    r"M(k) = \begin{cases} 1 \text{ or } k & l \le k \le h \\ 0 & \text{otherwise} \end{cases},\quad "
    r"k = \frac{\pi_{old}(y_{i,t})}{\pi_{roll}(y_{i,t})}"
)
_GRPO_EXTRAS: dict[str, Input] = {"kl_beta": "logp_ref", "decoupled": "logp_roll"}

CATALOGUE: dict[str, ObjectiveEntry] = {
    entry.name: entry
    for entry in (
        ObjectiveEntry(
            name="grpo",
            title="GRPO",
            family="policy",
            summary="Clipped token ratio with advantages standardised within a group; every response counts the same.",
            when="Start here: one sampler, fresh responses, rewards that differ within a group.",
            formula=rf"-\frac{{1}}{{G}}\sum_i \frac{{1}}{{|y_i|}}\sum_t {_CLIP},\quad {_RHO}",
            paper="DeepSeekMath (Shao et al., 2024)",
            parameters=knobs.GrpoParameters,
            needs=("logp_old", "rewards"),
            needs_with=_GRPO_EXTRAS,
        ),
        ObjectiveEntry(
            name="dr_grpo",
            title="Dr. GRPO",
            family="policy",
            summary="GRPO without its two divisions: centred advantages, and a constant instead of the length.",
            when="When GRPO gives too much weight to responses of very different lengths, or to prompts that are nearly always solved.",
            formula=rf"-\frac{{1}}{{G\, T_{{max}}}}\sum_i \sum_t {_CLIP},\quad {_RHO}",
            paper="Understanding R1-Zero-Like Training (Liu et al., 2025)",
            parameters=knobs.DrGrpoParameters,
            needs=("logp_old", "rewards"),
            needs_with=_GRPO_EXTRAS,
        ),
        ObjectiveEntry(
            name="dapo",
            title="DAPO",
            family="policy",
            summary="Every token of the batch counts the same, and the upper clip is wider than the lower.",
            when="For long responses, and when the entropy falls early: rare tokens may rise further before they are clipped.",
            formula=rf"-\frac{{1}}{{\sum_i |y_i|}}\sum_i \sum_t {_CLIP},\quad {_RHO}",
            paper="DAPO (Yu et al., 2025)",
            parameters=knobs.DapoParameters,
            needs=("logp_old", "rewards"),
            needs_with=_GRPO_EXTRAS,
        ),
        ObjectiveEntry(
            name="gspo",
            title="GSPO",
            family="policy",
            summary="The ratio and the clip are of whole responses, length-normalised.",
            when="For mixtures of experts and long responses, where the ratios of single tokens are noise.",
            formula=rf"-\frac{{1}}{{G}}\sum_i {_CLIP_S},\quad {_S}",
            paper="Group Sequence Policy Optimization (Zheng et al., 2025)",
            parameters=knobs.GspoParameters,
            needs=("logp_old", "rewards"),
            needs_with=_GRPO_EXTRAS,
        ),
        ObjectiveEntry(
            name="icepop",
            title="IcePop",
            family="policy",
            summary="GRPO that silences tokens on which trainer and sampler disagree by more than a factor.",
            when="When sampler and trainer run in different arithmetic, such as a bf16 server and an fp32 trainer; watch the mismatch.",
            formula=rf"-\frac{{1}}{{G}}\sum_i \frac{{1}}{{|y_i|}}\sum_t M(k)\, {_CLIP},\quad {_POP}",
            paper="GLM-5 (2026); weights: ERNIE 5.0 (2026)",
            parameters=knobs.IcepopParameters,
            needs=("logp_old", "logp_roll", "rewards"),
        ),
        ObjectiveEntry(
            name="misc",
            title="MISC",
            family="policy",
            summary="GSPO's clipped term per response, scaled by the mean of IcePop's token weights.",
            when="Use it like IcePop when you would choose GSPO over GRPO: a response's update shrinks with its unreliable tokens.",
            formula=rf"-\frac{{1}}{{G}}\sum_i \Big[\frac{{1}}{{|y_i|}}\sum_t M(k)\Big] {_CLIP_S},\quad {_POP}",
            paper="ERNIE 5.0 (2026)",
            parameters=knobs.MiscParameters,
            needs=("logp_old", "logp_roll", "rewards"),
        ),
        ObjectiveEntry(
            name="double_sided",
            title="Double-sided importance sampling",
            family="policy",
            summary="The sampler's own log-probabilities are the old policy; tokens that drifted too far are dropped.",
            when="When a pass of the old policy is too expensive or impossible, such as with asynchronous agents.",
            formula=(
                r"-\frac{1}{\sum_i |y_i|}\sum_i\sum_t \operatorname{sg}[f(r)]\, A_i \log\pi(y_{i,t}),\quad "
                r"r = \frac{\pi(y_{i,t})}{\pi_{roll}(y_{i,t})},\quad "
                r"f(r) = \begin{cases} r & 1-\varepsilon_l < r < 1+\varepsilon_h \\ 0 & \text{otherwise} \end{cases}"
            ),
            paper="GLM-5, asynchronous agents (2026)",
            parameters=knobs.DoubleSidedParameters,
            needs=("logp_roll", "rewards"),
        ),
        ObjectiveEntry(
            name="kimi",
            title="Kimi K2.5",
            family="policy",
            summary="The ratio itself is clipped, for both signs of the advantage; a squared log-ratio pulls back.",
            when="For runs of agents that make several updates on the same responses: drift is bounded in both directions.",
            formula=(
                r"-\mathbb{E}_x \frac{1}{N_x}\sum_i\sum_t \Big[\operatorname{clip}(\rho,\alpha,\beta)(r_i-\bar r) "
                r"- \tau (\log\rho)^2\Big],\quad \rho = \frac{\pi(y_{i,t})}{\pi_{roll}(y_{i,t})},\quad "
                r"N_x = \sum_i |y_i|"
            ),
            paper="Kimi K2.5 (2026)",
            parameters=knobs.KimiParameters,
            needs=("logp_roll", "rewards"),
        ),
        ObjectiveEntry(
            name="oapl",
            title="OAPL",
            family="policy",
            summary="Regresses the log-ratio to a lagging sampler onto the optimal advantage; designed for stale data.",
            when="When the sampler lags many steps behind: a regression needs no ratio near 1. Responses of a group must differ in reward.",
            formula=(
                r"\frac{1}{G}\sum_i \Big(\beta_2 \log\frac{\pi(y_i)}{\pi_{roll}(y_i)} - (r_i - V)\Big)^2,\quad "
                r"V = \beta_1 \log \frac{1}{G}\sum_i e^{r_i/\beta_1}"
            ),
            paper="LLMs Can Learn to Reason Via Off-Policy RL (2026)",
            parameters=knobs.OaplParameters,
            needs=("logp_roll", "rewards"),
        ),
        ObjectiveEntry(
            name="distill",
            title="On-policy distillation",
            family="policy",
            summary="IcePop with a teacher's verdict on every token in place of rewards.",
            when="To give one model the skills of another with the same tokenizer, or to give it back what a later stage has lost.",
            formula=(
                r"-\frac{1}{G}\sum_i \frac{1}{|y_i|}\sum_t M(k)\, \min\left(\rho A_{i,t},\ "
                r"\operatorname{clip}(\rho, 1-\varepsilon_l, 1+\varepsilon_h)\, A_{i,t}\right),\quad "
                r"A_{i,t} = \operatorname{sg}\Big[\log\frac{\pi_{teacher}(y_{i,t})}{\pi(y_{i,t})}\Big]"
            ),
            paper="GLM-5, cross-stage distillation (2026)",
            parameters=knobs.DistillParameters,
            needs=("logp_old", "logp_roll", "logp_teacher"),
        ),
        ObjectiveEntry(
            name="dpo",
            title="DPO",
            family="preference",
            summary="Makes the chosen response likelier than the rejected one, relative to a reference, and imitates it a little.",
            when="From pairs that people have judged, without sampling and without a reward model.",
            formula=(
                r"-\log\sigma\Big(\beta\Big[\log\frac{\pi(y_c)}{\pi_{ref}(y_c)} - \log\frac{\pi(y_r)}{\pi_{ref}(y_r)}"
                r"\Big]\Big) - \frac{w}{|y_c|}\sum_t \log\pi(y_{c,t})"
            ),
            paper="Direct Preference Optimization (Rafailov et al., 2023); imitation term: Rubric-ARM (2026)",
            parameters=knobs.DpoParameters,
            needs=("chosen", "rejected", "logp_ref"),
        ),
        ObjectiveEntry(
            name="bradley_terry",
            title="Bradley-Terry",
            family="preference",
            summary="A reward model scores the chosen response above the rejected one.",
            when="To train a reward model from pairs.",
            formula=r"-\log\sigma(s_c - s_r - m) + \gamma\, (s_c + s_r)^2",
            paper="Bradley and Terry (1952); centring: Eisenstein et al. (2023)",
            parameters=knobs.BradleyTerryParameters,
            needs=("chosen", "rejected"),
        ),
        ObjectiveEntry(
            name="sft",
            title="Supervised fine-tuning",
            family="supervised",
            summary="Imitates the turns that the loss mask selects.",
            when="As the first stage, when there are responses worth imitating.",
            formula=r"-\frac{1}{\sum_i |y_i|}\sum_i\sum_t \log\pi(y_{i,t})",
            paper="Turn-level loss mask: GLM-5 (2026)",
            parameters=knobs.SftParameters,
            needs=(),
        ),
    )
}

DIAGNOSTICS: dict[str, str] = {
    "ratio_raw": "Mean of the ratio that is optimised, over all generated tokens. 1 at the first update.",
    "ratio_masked": "The same over the tokens that have a policy gradient.",
    "masked_share": "Share of tokens without a policy gradient, for any reason.",
    "clip_share": "Share of tokens whose ratio is clipped. A few per cent are healthy.",
    "pop_share": "Share of tokens silenced because trainer and sampler disagree about them.",
    "mismatch_raw": "Mean of the trainer's over the sampler's probability of the same token under the same weights.",
    "mismatch_masked": "The same over the tokens that have a policy gradient.",
    "mismatch_kl_raw": "How far the trainer is from the sampler under the same weights (k3 estimate, nats per token).",
    "mismatch_kl_masked": "The same over the tokens that have a policy gradient.",
    "mismatch_far_raw": "The largest factor between the probabilities that trainer and sampler give one token.",
    "mismatch_far_masked": "The same over the tokens that have a policy gradient.",
    "kl_old": "How far the policy has moved from the old one, or from the sampler (k3 estimate, nats per token).",
    "kl": "How far the policy is from the reference (k3 estimate, nats per token).",
    "kl_teacher": "How far the policy is from the teacher (nats per token).",
    "penalty": "Mean squared log-ratio to the sampler.",
    "log_ratio": "Mean log-ratio of whole responses to the sampler.",
    "tokens": "Generated tokens that took part.",
    "sequences": "Responses that took part.",
    "excluded": "Responses left out because their reward is missing.",
    "nll": "Mean negative log-probability of the tokens to imitate.",
    "accuracy": "Share of pairs in which the chosen response is ahead.",
    "reward_chosen": "The chosen response's log-ratio to the reference, times beta.",
    "reward_rejected": "The rejected response's log-ratio to the reference, times beta.",
    "nll_chosen": "Mean negative log-probability of the chosen response's tokens.",
    "margin": "Mean distance by which the chosen response is ahead.",
}
"""The meanings of the numbers beside a loss. In a run they are the metrics policy/<name>."""
