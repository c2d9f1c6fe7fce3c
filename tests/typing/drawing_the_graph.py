"""The tutorial's "Drawing the graph"."""

import xpgrad as xp
from xpgrad.autograd import graph

weights = xp.tensor([[1.0, 2.0]], requires_grad=True)
loss = xp.mean(xp.tanh(weights) ** 2)
picture = graph.draw(loss, names={"weights": weights})
assert "nodes" in repr(picture)
