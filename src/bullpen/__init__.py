"""Bullpen: a server that runs coding agents and never loses a session."""

__version__ = "0.1.0"
