"""The array side of a Tensor: its shape, dtype, device and class, without its history."""
