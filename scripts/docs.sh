#!/usr/bin/env bash
# Build the documentation into build/site: pages, reference and notebooks, which are executed. A warning is an error.
# Usage: scripts/docs.sh [serve]; serve shows the site while pages are edited.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/setup.sh docs
export NO_MKDOCS_2_WARNING=1 OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}" # the versions are pinned
unset MPLBACKEND # notebooks have their own
if [ "${1:-}" = serve ]; then
    exec .venv/bin/mkdocs serve
fi
.venv/bin/mkdocs build --strict --quiet
echo "built: build/site; to see it with its search:  python3 -m http.server -d build/site"
