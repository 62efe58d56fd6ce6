"""Open sessions with their workers, viewers, timers and background jobs."""
