"""Programs drawn at random, and run by xpgrad and by PyTorch."""
