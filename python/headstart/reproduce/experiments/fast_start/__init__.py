"""Experiments of: TCP Fast Start."""
