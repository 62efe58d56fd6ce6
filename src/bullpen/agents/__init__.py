"""Know which agents can be started: their definitions, programs, logins and environments."""
