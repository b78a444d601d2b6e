#!/bin/sh
# Changes the source in one place after the other (tools/mutants/*.toml say where) and runs the core tests of that
# layer, which must fail. What survives is printed: a missing test, or a change that nothing can observe. Fails below
# 90 % killed of those that compile.
#
#   tools/mutants.sh          all of them: hours
#   tools/mutants.sh 8        every eighth, spread over all files
#   tools/mutants.sh 8 5      another eighth
set -eu
cd "$(dirname "$0")/.."
shards=${1:-1}
shard=${2:-0}
out=${MUTANTS_OUT:-target/mutants}
command -v cargo-mutants >/dev/null 2>&1 || cargo install --locked --quiet cargo-mutants
export CARGO_INCREMENTAL=1

caught=0 missed=0
for layer in model log engine; do
    mkdir -p "$out/$layer"
    # Survivors are counted below.
    cargo mutants --config "tools/mutants/$layer.toml" --output "$out/$layer" --shard "$shard/$shards" \
        --sharding round-robin --colors never >"$out/$layer.log" 2>&1 || true
    result=$out/$layer/mutants.out
    [ -e "$result/missed.txt" ] || { tail -n 40 "$out/$layer.log" >&2; exit 1; }
    killed=$(cat "$result/caught.txt" "$result/timeout.txt" | wc -l)
    survived=$(wc -l <"$result/missed.txt")
    echo "mutants layer=$layer killed=$killed survived=$survived unviable=$(wc -l <"$result/unviable.txt")"
    cat "$result/missed.txt"
    caught=$((caught + killed)) missed=$((missed + survived))
done
echo "mutants killed=$caught viable=$((caught + missed))"
[ $((caught * 10)) -ge $(((caught + missed) * 9)) ] && [ "$caught" -gt 0 ]
