"""Experiments from a config file: surrogate rankers, baselines, the exact reranker, TensorBoard, command line.

What the user can get wrong raises a ConfigError, a DataError or a RunError, with what to do in its message; the command
line shows that message alone.
"""
