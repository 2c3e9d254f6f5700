#!/usr/bin/env bash
# Create .venv and install the toolkit with pinned dependencies; build its compiled core again where that has changed.
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

install() {
    .venv/bin/python -m pip install --quiet --disable-pip-version-check "$@"
}

# Set CXX to a compiler that knows C++20: the one it names, one of the system, or that of the ziglang wheel.
find_compiler() {
    local name zig
    for name in ${CXX:-} c++ g++ clang++; do
        if echo '#include <span>' | "$name" -x c++ -std=c++20 -fsyntax-only - 2>/dev/null; then
            export CXX="$name"
            return
        fi
    done
    echo "No compiler for C++20 found (c++, g++, clang++): using the one of the ziglang wheel from PyPI ..." >&2
    install -c constraints.txt ziglang
    zig="$(.venv/bin/python -c 'import pathlib, ziglang; print(pathlib.Path(ziglang.__file__).with_name("zig"))')"
    mkdir -p .venv/zig
    for name in c++ ar ranlib; do
        cat >".venv/zig/$name" <<END
#!/bin/sh
export ZIG_GLOBAL_CACHE_DIR="$PWD/.venv/zig/cache"
exec "$zig" $name $([ $name != c++ ] || echo -mcpu=baseline) "\$@"
END
        chmod +x ".venv/zig/$name"
    done
    export CXX="$PWD/.venv/zig/c++"
}

# reinstall only when what is asked for has changed
stamp=".venv/.installed-${extras:-core}"
wanted="$(cat pyproject.toml constraints.txt | sha256sum)"
if [ "$(cat "$stamp" 2>/dev/null)" != "$wanted" ]; then
    echo "Installing into .venv (a few minutes the first time) ..." >&2
    # the pinned CPU build first: a looser request would fetch gigabytes of GPU libraries
    install "$(grep '^torch==' constraints.txt)"
    # the build tools lie in .venv, too, and so does the build folder: ninja can go on there whenever C++ code changes
    install -c constraints.txt scikit-build-core nanobind cmake ninja numpy  # numpy for packages that are compiled here
    find_compiler
    install -c constraints.txt --no-build-isolation --config-settings build-dir=.venv/native -e ".${extras:+[$extras]}"
    echo "$wanted" >"$stamp"
fi
.venv/bin/cmake --build .venv/native -- --quiet >&2
