"""The names that fields of a config have on forms."""

ACRONYMS = {"lr": "Learning rate", "kl_beta": "KL weight", "top_p": "Top-p", "t0": "Midpoint", "eps_low": "Clip below"}
ACRONYMS |= {"pop_low": "Mismatch at least", "pop_high": "Mismatch at most", "pop_mode": "How mismatch counts"}
ACRONYMS |= {"std_ddof": "Taken off the count", "std_eps": "Added to the deviation", "max_tokens": "Divisor"}
ACRONYMS |= {
    "into": "Dataset of the responses",
    "cpus": "Processors",
    "gpus": "GPUs",
    "lr_times": "Times the learning rate",
    "memory_gb": "Memory",
    "eps_high": "Clip above",
    "lora": "LoRA",
    "optim": "Optimiser",
    "dtype": "Precision",
}


def words(name: str) -> str:
    """`max_grad_norm` as a label; some names mean nothing without their own."""
    return ACRONYMS.get(name) or name.replace("_", " ").capitalize()
