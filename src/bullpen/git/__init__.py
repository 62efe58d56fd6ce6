"""Run git safely on repositories and worktrees that agents can write to."""
