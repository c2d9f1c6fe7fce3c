"""Programs: what functions of Tensors do with arrays, captured once, made smaller by passes, and emitted as Python source."""
