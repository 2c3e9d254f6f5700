"""Runs: one experiment in a folder of its own, with its log, models, scores, table and certificate."""
