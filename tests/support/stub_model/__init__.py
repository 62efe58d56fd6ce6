"""A stub of a model's HTTP API on loopback: real agents run turns with it, without an account or a network.

A test sets the answers to a prompt, can pause an answer in the middle of its stream, and reads the requests
of agents in the log of the model.
"""

from .answer_parts import Answer, Pause, ShellTool, Text, WriteTool
from .model import LoggedRequest, StubModel

__all__ = ["Answer", "LoggedRequest", "Pause", "ShellTool", "StubModel", "Text", "WriteTool"]
