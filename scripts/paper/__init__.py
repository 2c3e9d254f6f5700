"""The study of the paper: what its page says, computed from the results of a sweep and from its theorems."""
