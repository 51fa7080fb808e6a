"""Experiments of: Network Adaptive TCP Slow Start."""
