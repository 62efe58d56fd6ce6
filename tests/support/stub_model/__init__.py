"""A stand-in for a model on loopback: real agents do real turns with it, without an account or a network.

A test says beforehand what the model answers to a prompt, holds an answer in the middle of its stream for as
long as it likes, and reads in the model's own log what agents asked.
"""

from .answers import Answer, Hold, Say, Shell, Write
from .model import Asked, StubModel

__all__ = ["Answer", "Asked", "Hold", "Say", "Shell", "StubModel", "Write"]
