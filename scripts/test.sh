#!/usr/bin/env bash
# Install what is needed and pass every check: format, lint, types, tests and doctests.
# Arguments go to pytest; with --slow it runs the slow tier of the tests, too, and installs what the pages' examples need.
set -euo pipefail
cd "$(dirname "$0")/.."
extras=dev
[[ " $* " != *" --slow "* ]] || extras=dev,docs
scripts/setup.sh "$extras"
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}" MPLBACKEND=Agg
unset PYTHONDONTWRITEBYTECODE # the tests start many processes, which load the bytecode of the first one
.venv/bin/ruff format --check .
.venv/bin/ruff check .
.venv/bin/clang-format --dry-run -Werror $(find ltr/native -name "*.cpp" -o -name "*.h")
.venv/bin/mypy
.venv/bin/python -m pytest -n auto --dist loadfile --no-loadscope-reorder "$@"
