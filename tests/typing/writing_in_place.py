"""The tutorial's "Writing in place"."""

import xpgrad as xp

a = xp.tensor([1.0, 2.0, 3.0], requires_grad=True)
b = a * 1.0
row = b[1:]
row *= 10.0
b[0] = 5.0
b.mul_(2.0).add_(1.0)
with xp.autograd.graph.allow_mutation_on_saved_tensors():
    c = a * 2.0
    d = c * c
    c += 1.0
    xp.sum(d).backward()
xp.sum(b).backward()
