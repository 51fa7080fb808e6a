"""The experiments, one folder a paper, one module each."""
