"""The tutorial's "Less memory"."""

from collections.abc import Callable
from functools import partial
from typing import Any

import xpgrad as xp
from xpgrad import Tensor
from xpgrad.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts


def block(p: Tensor) -> Tensor:
    return xp.tanh(xp.sin(p) * xp.exp(p))


def keep_products(ctx: Any, op: Callable[..., Any], *args: Any) -> CheckpointPolicy:
    return CheckpointPolicy.MUST_SAVE if op is xp.matmul else CheckpointPolicy.PREFER_RECOMPUTE


start = xp.tensor([0.1, 0.2], requires_grad=True)
result: Tensor = checkpoint(block, start, use_reentrant=False)
xp.sum(result).backward()
contexts = partial(create_selective_checkpoint_contexts, keep_products)
xp.sum(checkpoint(block, start, use_reentrant=False, context_fn=contexts)).backward()
with xp.autograd.graph.save_on_cpu():
    xp.sum(block(start)).backward()
compiled: Tensor = xp.compile(block)(start)
