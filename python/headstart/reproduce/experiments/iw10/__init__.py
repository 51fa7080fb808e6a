"""Experiments of: An Argument for Increasing TCP's Initial Congestion Window."""
