"""The keeper: a small process that outlives the server and is the parent of every child.

Standard library only, and it imports nothing else of Bullpen. `client` is the server's side and is never
loaded by the keeper itself; every module but `client` and `marker` is, so imports there cost resident
memory for as long as a child lives (hence `TYPE_CHECKING = False` instead of importing `typing`).
"""
