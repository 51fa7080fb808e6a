"""Experiments of: TCP Swift Start."""
