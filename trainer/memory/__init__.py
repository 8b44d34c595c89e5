"""What a run needs of memory, computed before it starts. Torch-free: the web form shows it, the trainer checks it.

`shape` reads what decides the size of a model, `activations` counts what a pass keeps, `forecast` adds everything up for a
config and a device, `advice` says what to lower. All sizes are bytes.
"""
