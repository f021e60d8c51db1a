"""Compares captures before and after a change: what changed, by how much, and whether that is more than noise."""
