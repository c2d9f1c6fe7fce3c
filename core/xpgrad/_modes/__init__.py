"""The modes that this thread is in."""
