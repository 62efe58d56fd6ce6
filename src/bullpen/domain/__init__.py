"""The vocabulary and the rules of Bullpen as pure functions and values, without I/O and without await."""
