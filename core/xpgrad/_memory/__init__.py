"""Who shares memory, and when it was written."""
