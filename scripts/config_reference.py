"""Write docs/config.md, the table of every config key, from the fields of the config classes.

::

    python scripts/config_reference.py
"""

from __future__ import annotations

from pathlib import Path

from trainers.config import describe_keys
from trainers.tables import markdown_table

PAGE = Path(__file__).parents[1] / "docs" / "config.md"

_INTRODUCTION = """# Config keys

Every key of an experiment, written by `scripts/config_reference.py`. `ltr options` prints this table and the keys of
sweeps and searches, `ltr options exact` a section, and `ltr options exact.margin` one key. Any key can be set on the
command line: `ltr run inspect.toml exact.top_k=100 name=top100`.
"""


def page() -> str:
    """Return the page: a table for each section."""
    sections: dict[str, list[tuple[str, str, str]]] = {}
    for key, default, meaning in describe_keys():
        section = key.partition(".")[0] if "." in key else "run"
        sections.setdefault(section, []).append((f"`{key}`", f"`{default}`" if default else "", meaning))
    header = ["key", "default", "meaning"]
    return "\n".join(
        [_INTRODUCTION, *(f"## {name}\n\n{markdown_table(header, rows)}\n" for name, rows in sections.items())]
    )


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
