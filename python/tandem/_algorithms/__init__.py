"""Algorithms that both faces use: pure functions over the engine's tensors."""
