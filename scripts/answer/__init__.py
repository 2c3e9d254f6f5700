"""The measurement behind `docs/answer.md`: `AutoRanker` and the methods that analysts use, on tables and splits."""
