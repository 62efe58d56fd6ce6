"""Words and rules of Bullpen: values in, values out; no I/O and no await."""
