"""Record operations as a graph of nodes, and run backward passes over it."""
