#!/usr/bin/env bash
# Run the tests of the compiled core with the sanitizers: addresses and undefined behaviour, then data races; or measure
# which of its lines they reach.
# Usage: scripts/sanitize.sh [address|thread|coverage] [ARGUMENTS OF PYTEST]; needs g++ and its sanitizer libraries
# (Linux). With SETUP=no it takes .venv as it is.
set -euo pipefail
cd "$(dirname "$0")/.."
[ "${SETUP:-}" = no ] || scripts/setup.sh dev
checkout="$PWD"

# the tests that run compiled kernels
areas=(
    arcs card_demands card_search cards central certificate demand foreign gbdt hosted levels line_search listwise
    local_search loss_invariants max_nonzeros metrics native_losses native_weight_space points probing
    scores supports survival trec weight_space whole_numbers
)
shopt -s nullglob globstar
files=()
for area in "${areas[@]}"; do files+=(tests/**/test_"$area".py); done

kinds=(address thread)
case ${1:-} in address | thread | coverage)
    kinds=("$1")
    shift
    ;;
esac
[ -d "$checkout/../shared/data" ] && export LTR_DATA="${LTR_DATA:-$checkout/../shared/data}"
export OMP_NUM_THREADS=1
# leaks are those of Python; the first error ends the run
export ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 TSAN_OPTIONS=halt_on_error=1
for kind in "${kinds[@]}"; do
    library='' left_out=''
    case $kind in
    # slower: proofs within half a second are out of reach; pytrec_eval frees arrays of new[]
    address) flags="-fsanitize=address,undefined;-fno-sanitize-recover=all" library=libasan.so
        left_out="limits_leave or those_of_trec_eval or those_of_ir_measures" ;;
    # ten times as slow
    thread) flags="-fsanitize=thread" library=libtsan.so
        left_out="subranks_take_no_more or limits_leave or trace_tells or linear_programs_decide or a_stop_keeps or forked_process" ;;
    coverage) flags="--coverage" ;;
    esac
    # a copy of the packages in which the module is the one with the sanitizer: nothing in the toolkit knows of it
    copy="$checkout/build/$kind/copy"
    rm -rf "$copy"
    mkdir -p "$copy"
    cp -r ltr trainers tests scripts docs pyproject.toml "$copy"
    rm -f "$copy"/ltr/native/_core*.so
    .venv/bin/cmake -S ltr/native -B "build/$kind" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_CXX_COMPILER=g++ \
        -DLTR_SANITIZE="$flags" -DCMAKE_LIBRARY_OUTPUT_DIRECTORY="$copy/ltr/native" \
        -DPython_EXECUTABLE="$checkout/.venv/bin/python" >/dev/null
    .venv/bin/cmake --build "build/$kind" -- --quiet
    echo "$kind:"
    # Python is not built with a sanitizer, so its library comes first; addresses must not be random under threads
    (cd "$copy" && LD_PRELOAD="${library:+$(g++ -print-file-name=$library):$(g++ -print-file-name=libstdc++.so.6)}" PYTHONPATH="$copy" setarch "$(uname -m)" -R \
        "$checkout/.venv/bin/python" -m pytest -p no:cacheprovider --capture=sys ${left_out:+-k "not ($left_out)"} "${files[@]}" "$@")
    # one .gcov file a source, with how often each line was reached; lines that never were are marked #####
    [ "$kind" != coverage ] || (cd "build/$kind" && find . -name "*.gcda" -exec gcov --preserve-paths --relative-only \
        --source-prefix "$checkout" {} + | grep -A1 "^File 'ltr" )
done
