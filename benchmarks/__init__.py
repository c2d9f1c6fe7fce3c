"""Compare xpgrad's speed with handwritten NumPy and, if installed, with PyTorch, HIPS autograd, MyGrad and JAX.

`python -m benchmarks` measures. `workloads` defines the computations, `contestants` the libraries, and `measure` the timing.
"""
