"""`vmap` and batched gradients: a backend whose arrays are Tensors with an additional first axis."""
