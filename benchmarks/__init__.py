"""How fast xpgrad is: ratios to hand-written NumPy, beside PyTorch, HIPS autograd, MyGrad and JAX where they are installed.

`python -m benchmarks` measures; `workloads` says what is computed, `contestants` by whom, `measure` how it is timed.
"""
