"""Tests of Tensors and the graph that they record: protocols, operators, passes, hooks, drawings."""
