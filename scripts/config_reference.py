"""Write docs/config.md, the tables of every config key, from the fields of the config classes."""

from __future__ import annotations

from pathlib import Path

from trainers.config.grids import keys_of
from trainers.tables import markdown_table

PAGE = Path(__file__).parents[1] / "docs" / "config.md"

_INTRODUCTION = """# Config keys

Every key of an experiment, a sweep and a search, written by `scripts/config_reference.py`. `ltr options` prints them,
`ltr options exact` a section, and `ltr options exact.margin` one key. Any key can be set on the command line:
`ltr run inspect.toml exact.top_k=100 name=top100`.
"""


def page() -> str:
    """Return the page: a table for each section."""
    sections: dict[str, list[tuple[str, str, str]]] = {}
    for title, rows in keys_of().items():
        for key, default, meaning in rows:
            section = title.removeprefix("of a ") or (key.partition(".")[0] if "." in key else "run")
            sections.setdefault(section, []).append((f"`{key}`", f"`{default}`" if default else "", meaning))
    header = ["key", "default", "meaning"]
    return "\n".join(
        [_INTRODUCTION, *(f"## {name}\n\n{markdown_table(header, rows)}\n" for name, rows in sections.items())]
    )


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
