"""The demo agent: a real ACP agent without a model, for who has no other, and for trying things out."""
