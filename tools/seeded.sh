#!/usr/bin/env bash
# Puts bugs that other stores once had back, one at a time (tools/seeded-bugs.tsv, src/seeded.rs), and
# runs the core tests until one fails. Writes docs/seeded-bugs.md; fails if a bug goes unnoticed, or
# if a test fails without any.
#
#   tools/seeded.sh              all of them
#   tools/seeded.sh fjall-308    these, without writing the page
set -euo pipefail
cd "$(dirname "$0")/.."

LIST=tools/seeded-bugs.tsv
MODELS=tools/seeded-models.tsv
PAGE=docs/seeded-bugs.md
# The quickest first; a line is a test program and its arguments. One failing test is enough.
SUITE=(
    "lib"
    "model_rules"
    "model_apply"
    "fsio_sim"
    "codec_lengths"
    "store_sim"
    "store_poison"
    "log --skip twice_over --skip every_"
    "crash"
    "log every_"
    "log twice_over"
)
CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/sharestate
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$CACHE/target}
export SHARESTATE_CFG=sharestate_seeded RUSTC_WORKSPACE_WRAPPER=$PWD/tools/rustc-with-cfg.sh

# Every id in the source is listed, and every listed one is in the source.
diff <(cut -f1 "$LIST" "$MODELS" | sort) \
    <(grep -rhoPz 'seeded::bug\(\s*"\K[^"]+' src | tr '\0' '\n' | sort -u) \
    || { echo "seeded: src and the lists do not name the same bugs" >&2; exit 1; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# One build serves all.
targets=()
for line in "${SUITE[@]}"; do
    program=${line%% *}
    if [ "$program" = lib ]; then targets+=(--lib); else targets+=(--test "$program"); fi
done
cargo test --locked --no-default-features \
    --features testing --no-run --message-format=json "${targets[@]}" >"$work/build.json"
grep '"executable":"' "$work/build.json" |
    sed -E 's/.*"target":\{"kind":\["([a-z]+)"\].*"name":"([a-z_]+)","src_path".*"executable":"([^"]+)".*/\1 \2 \3/' |
    sed -E 's/^lib [a-z_]+ /lib /; s/^test //' >"$work/programs"

# Notes "program: test" of the first test, by name, that fails in the first program that fails.
run() {
    local name=$1 id=$2 line program arguments path log test
    for line in "${SUITE[@]}"; do
        read -r program arguments <<<"$line"
        path=$(awk -v name="$program" '$1 == name { print $2 }' "$work/programs")
        log="$work/$name.$program.log"
        # Processor time decides what hangs: a busy machine does not.
        # shellcheck disable=SC2086  # arguments are words
        if ! SHARESTATE_SEEDED=$id timeout 3600 prlimit --cpu=600 "$path" $arguments >"$log" 2>&1; then
            test=$(sed -nE 's/^test (.*) \.\.\. FAILED$/\1/p' "$log" | sort | head -n 1)
            echo "$program: ${test:-aborted or hung}" >"$work/$name.caught"
            return
        fi
    done
    : >"$work/$name.caught"
}

# Without any of them everything passes.
run none-of-them "" || true
if [ -s "$work/none-of-them.caught" ]; then
    echo "seeded: fails without any bug: $(cat "$work/none-of-them.caught")" >&2
    tail -n 40 "$work"/none-of-them.*.log >&2
    exit 1
fi

if [ $# -gt 0 ]; then ids=("$@"); else mapfile -t ids < <(cut -f1 "$LIST"); fi
running=0
for id in "${ids[@]}"; do
    run "$id" "$id" &
    running=$((running + 1))
    if [ "$running" -ge "${JOBS:-2}" ]; then
        wait -n
        running=$((running - 1))
    fi
done
wait

{
    echo "# Seeded bugs"
    echo
    echo "Bugs that other stores once had, put back into this one at a time (\`src/seeded.rs\`), and the test"
    echo "that caught each. Written by \`make seeded\`, which fails when one goes unnoticed."
    echo
    echo "| id | what was broken | caught by |"
    echo "|---|---|---|"
    while IFS=$'\t' read -r id url what; do
        caught=$(cat "$work/$id.caught" 2>/dev/null || true)
        echo "| [$id]($url) | $what | ${caught:-**NOTHING**} |"
    done <"$LIST"
    echo
    echo "Some show only in some orders of the threads; \`make models\` puts them back and requires that the model"
    echo "fails."
    echo
    echo "| id | what was broken | caught by |"
    echo "|---|---|---|"
    while IFS=$'\t' read -r id url what model; do
        echo "| [$id]($url) | $what | engine::models: $model |"
    done <"$MODELS"
} >"$work/page.md"

missed=0
for id in "${ids[@]}"; do
    caught=$(cat "$work/$id.caught")
    printf '%-16s %s\n' "$id" "${caught:-NOT CAUGHT}"
    [ -n "$caught" ] || missed=$((missed + 1))
done
if [ $# -eq 0 ]; then cp "$work/page.md" "$PAGE"; fi
echo "seeded-bugs=${#ids[@]} caught=$((${#ids[@]} - missed)) missed=$missed"
[ "$missed" -eq 0 ]
