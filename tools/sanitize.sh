#!/bin/sh
# Build the compiled kernels with the address and undefined-behaviour sanitizers, in a folder of their own, and run the
# kernel tests on them. A finding ends the run. Usage: tools/sanitize.sh [python] [pytest options]
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
python=${1:-python3}
[ $# -gt 0 ] && shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

mkdir -p "$work/tests"
cp -r "$root/setup.py" "$root/pyproject.toml" "$root/README.md" "$root/LICENSE" "$root/src" "$work"
cp -r "$root/tests/engine" "$work/tests"
find "$work/src" -name '*.so' -delete
cd "$work"

CC=gcc CXX=g++ GMIL_SANITIZE=address,undefined "$python" setup.py -q build_ext --inplace
ls src/gmil/engine/native/_kernels*.so > /dev/null

# The interpreter itself is not built with the sanitizers, so their library comes first; Python's own leaks are not ours.
LD_PRELOAD="$(gcc -print-file-name=libasan.so) $(gcc -print-file-name=libubsan.so) $(g++ -print-file-name=libstdc++.so.6)" \
ASAN_OPTIONS=detect_leaks=0:abort_on_error=1 \
UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
PYTHONPATH="$work/src" \
OMP_NUM_THREADS=2 \
"$python" -m pytest tests/engine -q -m "not slow" -p no:cacheprovider "$@"
