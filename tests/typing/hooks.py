"""The tutorial's "Hooks"."""

import xpgrad as xp
from xpgrad import Tensor

h = xp.tensor([1.0, -2.0], requires_grad=True)
z = h * 3.0
handle = z.register_hook(lambda g: xp.clip(g, -1.0, 1.0))
xp.sum(z * z).backward()
assert h.grad is not None
assert h.grad.tolist() == [3.0, -3.0]
handle.remove()


def step(parameter: Tensor) -> None:
    with xp.no_grad():
        assert parameter.grad is not None
        parameter -= 0.1 * parameter.grad
    parameter.grad = None


h.grad = None
h.register_post_accumulate_grad_hook(step)
xp.sum(h).backward()
seen: list[int] = []


def count(grads: list[Tensor | None]) -> None:
    seen.append(len(grads))


both = xp.autograd.graph.register_multi_grad_hook([h], count)
xp.sum(h).backward()
assert seen == [1]
both.remove()
