"""What people see: matplotlib figures and their style, HTML tables for notebooks, a progress bar."""
