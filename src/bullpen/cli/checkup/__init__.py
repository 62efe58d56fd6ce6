"""What `bullpen doctor` looks at: each file some checks, each check a few findings."""
