"""The verbs and a line about each, so that help needs none of them imported."""

VERBS = {
    "serve": "Run the server, in the foreground.",
    "url": "Print a link that logs a browser in.",
    "status": "Show whether the server runs and what needs you.",
    "ls": "List sessions.",
    "new": "Start a terminal in a new session and attach to it.",
    "attach": "Use a worker's terminal from here.",
    "logs": "Print what a worker printed, or a session's events.",
    "show": "Show everything about a session.",
    "wait": "Wait until a session or worker is done.",
    "stop": "End a session or one worker, gracefully.",
    "rm": "Cancel a session, or remove its data too.",
    "worker": "Add, list, restart or end the workers of a session.",
    "repo": "Register, list or forget git repositories.",
    "token": "Add, list, revoke or rotate the tokens that let others in.",
    "service": "Run the server as a systemd user service.",
    "config": "Show every setting and where it comes from.",
    "doctor": "Check whether all is well here, and say what to do.",
    "db": "Look at or move the revision of the database.",
    "completion": "Print a completion script for your shell.",
}
