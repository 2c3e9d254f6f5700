"""The figures of a report."""

from trainers.report.pictures.subjects import pictures

__all__ = ["pictures"]
