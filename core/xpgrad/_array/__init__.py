"""A Tensor as just an array: shape, dtype, device and the class that says where it lives."""
