"""The running house: open sessions, their workers, who is looking."""
