"""Experiments of: HyStart."""
