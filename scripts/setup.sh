#!/usr/bin/env bash
# Create .venv and install the toolkit with pinned dependencies; does nothing when that is done already.
# Usage: scripts/setup.sh [EXTRAS], such as scripts/setup.sh dev
set -euo pipefail
cd "$(dirname "$0")/.."

extras="${1:-}"
python="${PYTHON:-python3}"
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
    echo "Python 3.11 or newer is needed; set PYTHON to one (found $("$python" --version))" >&2
    exit 1
}
[ -x .venv/bin/python ] || "$python" -m venv .venv

# reinstall only when what is asked for has changed
stamp=".venv/.installed-${extras:-core}"
wanted="$(cat pyproject.toml constraints.txt | sha256sum)"
if [ "$(cat "$stamp" 2>/dev/null)" != "$wanted" ]; then
    echo "Installing into .venv (a few minutes the first time) ..." >&2
    # the pinned CPU build first: a looser request would fetch gigabytes of GPU libraries
    .venv/bin/python -m pip install --quiet --disable-pip-version-check "$(grep '^torch==' constraints.txt)"
    .venv/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".${extras:+[$extras]}"
    echo "$wanted" >"$stamp"
fi
