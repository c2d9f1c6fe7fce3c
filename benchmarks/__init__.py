"""The speed of xpgrad: ratios to hand-written NumPy, next to PyTorch, HIPS autograd, MyGrad and JAX where they are installed.

`python -m benchmarks` measures; `workloads` says what is computed, `contestants` by whom, `measure` how it is timed.
"""
