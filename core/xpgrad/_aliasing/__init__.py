"""Track which Tensors share memory, and when that memory was written."""
