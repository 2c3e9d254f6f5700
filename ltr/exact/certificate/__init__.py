"""Certificates of solutions: `certificate` has the file, `recorder` and `partition` find the proof that it holds."""

from ltr.exact.certificate.certificate import Certificate, certify

__all__ = ["Certificate", "certify"]
