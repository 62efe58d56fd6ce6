"""The logs of sessions and their recordings: append, follow, record and replay."""
