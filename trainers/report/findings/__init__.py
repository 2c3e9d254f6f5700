"""What a sweep shows: comparisons of methods with tests that hold, in sentences and tables."""

from trainers.report.findings.summary import findings, headline

__all__ = ["findings", "headline"]
