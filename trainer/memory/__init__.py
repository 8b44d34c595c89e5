"""Computes the memory that a run needs before it starts. No module here imports torch: the web form shows the result, and the trainer
checks it.

`shape` reads the numbers that decide the size of a model, `activations` counts what a pass keeps, `forecast` adds everything up for a
config and a device, `advice` says what to lower. All sizes are bytes.
"""
