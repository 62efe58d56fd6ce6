"""Workers of a session: agents, terminals, diffs and documents, each run turned into events."""
