"""The keeper: a small process that outlives the server and is the parent of every child process.

Standard library only, and it imports nothing else of Bullpen. `client` and `remote` are the server's side and
are never loaded by the keeper itself; every other module but `marker` is, so imports there cost resident
memory for as long as a child lives (hence `TYPE_CHECKING = False` instead of importing `typing`).
"""
