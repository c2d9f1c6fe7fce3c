"""The tutorial's "What is recorded": the modes are contexts and decorators, which keep the types of what they decorate."""

from collections.abc import Iterator

import xpgrad as xp
from xpgrad import Tensor

t = xp.tensor(2.0, requires_grad=True)
y = xp.sin(t) * t
assert y.grad_fn is not None
names: list[str] = [node.name() for node, _ in y.grad_fn.next_functions if node is not None]
assert names == ["SinBackward0", "AccumulateGrad"]


@xp.no_grad()
def doubled(x: Tensor, times: int = 1) -> Tensor:
    return x * (2.0 * times)


@xp.inference_mode()
def batches(x: Tensor) -> Iterator[Tensor]:
    yield from x


result: Tensor = doubled(t, times=2)
assert not result.requires_grad
rows: list[Tensor] = list(batches(xp.ones(3)))
with xp.enable_grad(), xp.set_grad_enabled(False), xp.autograd.set_detect_anomaly(True):
    recorded: bool = xp.is_grad_enabled()
