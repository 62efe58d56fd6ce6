"""Where sessions live, and which files they can reach."""
