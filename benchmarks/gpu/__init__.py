"""The trainer on a GPU, part by part: what must agree with the CPU, what must be caught, what must fit, and how fast it is.

`make gpu-check`, or `python -m benchmarks.gpu`. Each part is a module with `run(setting)`, which returns rows.
"""
