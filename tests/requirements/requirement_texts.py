"""The numbered requirements of the source documents in short, and the deliberate deviations from them."""

DOCUMENTS = {
    "000 · the agent panel": range(1, 13),
    "001 · sessions over REST and ACP": range(13, 44),
    "002 · recording, playback, observers, queue": range(44, 55),
    "003 · many agents in one session": range(55, 70),
    "004 · sessions and workers": range(70, 84),
}

REQUIREMENTS = {
    13: "a session row has a UUID, repository, status, times, and a foreign key to the repository",
    14: "a message row has a UUID, session, role (user, agent, system), content as JSON, and a time",
    15: "a session is read with its messages in order and its repository",
    16: "an active session accepts prompts, and `updatedAt` follows its activity",
    17: "a completed session refuses prompts",
    18: "a cancelled session has a system message with the reason",
    19: "a session in error has a system message with the details",
    20: "sessions are listed newest first, without messages, 20 on a page",
    21: "the list is filtered by repository",
    22: "the list is filtered by several statuses, separated by commas",
    23: "the repository exists and lies inside `AGENT_WORKSPACE_ROOT`",
    24: "the agent starts in its workspace, and that is logged",
    25: "`..`, symbolic links and other escapes are refused and logged as a security event",
    26: "the content of a prompt is its text",
    27: "the content of an answer is text with `partial`",
    28: "the content of a plan is its `steps`",
    29: "the content of a tool call is `tool`, `args` and `result`",
    30: "`POST /api/sessions` answers 201 with the session",
    31: "the list is `{sessions, total, limit, offset}`",
    32: "a session is read by its id; 404 if there is none",
    33: "`POST …/prompt` answers 202 at once",
    34: "`GET …/messages?since=` returns later messages",
    35: "`DELETE` cancels, ends the agent and answers 200 with the session",
    36: "the sixth active session gets 429 with `Retry-After: 60` and an explanation",
    37: "a freed slot can be used again, which is logged",
    38: "an idle session is cancelled and completed with `{reason: idle_timeout}`",
    39: "activity resets the idle time",
    40: "`AGENT_SESSION_IDLE_TIMEOUT` is in minutes, 30 by default",
    41: "the session model has its fields, its statuses and its relations",
    42: "the message model has its fields, its roles and its relation",
    43: "migrations create the tables, foreign keys and indexes, and can be reversed",
}

# The deliberate deviation from the words of a document, with its reason.
DEVIATIONS = {
    17: "A session that has ended can be reopened: its history and its agent's conversation are kept.",
    19: "Only the failure of the agent that a session was created with, before its first answer, ends the "
    "session; otherwise the agent has failed and can be started again.",
    24: "The workspace is the working directory and the `cwd` of the ACP session; some agents have no flag.",
    29: "A message of a tool call also has `status` and `toolCallId`.",
    34: "Messages that have changed later are returned too, so that a poll sees the result of a tool call.",
    36: "The limit counts sessions with a living agent; terminals, diffs, documents and web pages are free.",
    38: "A session with a running turn, an open question, a queued message or a terminal is not idle.",
    41: "Tables and columns are in snake case; times are milliseconds since the epoch.",
    43: "Alembic takes the place of Prisma: `bullpen db upgrade` and `bullpen db downgrade`.",
}
