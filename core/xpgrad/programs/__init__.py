"""Programs: the array operations of a function of Tensors, captured once, simplified by passes, and printed as Python source."""
