"""Experiments from a config file: surrogate rankers, baselines, the exact reranker, TensorBoard, command line."""
