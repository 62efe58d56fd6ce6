"""The demo agent: a real ACP agent without a model, to try out Bullpen when no other agent is installed."""
