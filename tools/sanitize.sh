#!/bin/sh
# Build the compiled kernels with sanitizers, in a folder of their own, and run the kernel tests on them. A finding ends
# the run. Usage: [SANITIZERS=address,undefined|thread] tools/sanitize.sh [python] [pytest options]
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
python=${1:-python3}
[ $# -gt 0 ] && shift
sanitizers=${SANITIZERS:-address,undefined}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

mkdir -p "$work/tests"
cp -r "$root/setup.py" "$root/pyproject.toml" "$root/README.md" "$root/LICENSE" "$root/src" "$work"
cp -r "$root/tests/engine" "$work/tests"
find "$work/src" -name '*.so' -delete
cd "$work"

CC=gcc CXX=g++ GMIL_SANITIZE=$sanitizers "$python" setup.py -q build_ext --inplace
ls src/gmil/engine/native/_kernels*.so > /dev/null

# The interpreter itself is not built with the sanitizers, so their libraries come first.
case $sanitizers in
  thread) preload=$(gcc -print-file-name=libtsan.so) ;;
  *) preload="$(gcc -print-file-name=libasan.so) $(gcc -print-file-name=libubsan.so)" ;;
esac
found=0
LD_PRELOAD="$preload $(g++ -print-file-name=libstdc++.so.6)" \
ASAN_OPTIONS=detect_leaks=0:log_path="$work/finding" \
UBSAN_OPTIONS=print_stacktrace=1:log_path="$work/finding" \
TSAN_OPTIONS=die_after_fork=0:log_path="$work/finding" \
PYTHONPATH="$work/src" OMP_NUM_THREADS=3 OPENBLAS_NUM_THREADS=1 \
"$python" -m pytest tests/engine -q -m "not slow" -p no:cacheprovider "$@" || found=1
# Python's own leaks are not ours, and pytest would swallow what a finding prints: it is in files instead.
for log in "$work"/finding*; do
  [ -e "$log" ] && found=1 && cat "$log"
done
exit $found
