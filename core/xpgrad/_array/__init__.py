"""A Tensor as a mere array: shape, dtype, device and the class that says where it lives."""
