"""`vmap` and batched gradients: a backend whose arrays are Tensors with one more axis."""
