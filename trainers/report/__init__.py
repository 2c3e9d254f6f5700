"""Reports on sweeps: tables, figures and what they say, as Markdown and as one HTML page."""
