#!/bin/sh
# Changes the source in one place after the other (tools/mutants/*.toml say where) and runs the core tests of that
# layer (tools/mutants/tests.py says which), which must fail. All changes are compiled at once, behind switches
# (tools/mutants/run.py says how, and why to believe it). What survives is printed: a missing test, or a change that
# nothing can observe. Fails below 90 % killed of those that compile.
#
#   tools/mutants.sh                  every sixteenth, spread over all files
#   tools/mutants.sh 16 5             another sixteenth
#   tools/mutants.sh 1                all of them
#   tools/mutants.sh 1 0 'log/tail'   those in whose name this regular expression is found
#
# JOBS (2) run at a time; MUTANTS_OUT (target/mutants) gets the verdicts.
set -eu
cd "$(dirname "$0")/.."
shards=${1:-16}
shard=${2:-0}
out=${MUTANTS_OUT:-target/mutants}
cache=${XDG_CACHE_HOME:-$HOME/.cache}/sharestate
PATH=$PATH:$cache/tools/bin
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$cache/mutants}" CARGO_INCREMENTAL=1
command -v cargo-mutants >/dev/null 2>&1 || cargo install --locked --quiet --root "$cache/tools" cargo-mutants
parser=$cache/tools/tree-sitter-0.26.1
[ -d "$parser" ] || pip install --quiet --target "$parser" tree-sitter==0.26.1 tree-sitter-rust==0.24.2

mkdir -p "$out"
for layer in model log engine; do
    cargo mutants --config "tools/mutants/$layer.toml" --list --json >"$out/list-$layer.json"
done
PYTHONPATH=$parser exec python3 tools/mutants/run.py "$out" "$shards" "$shard" "${3:-}"
