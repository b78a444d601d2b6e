#!/bin/sh
# Runs every fuzz target for the given number of seconds over its committed corpus. Fails when one finds something.
set -eu
seconds="${1:-60}"
command -v cargo-fuzz >/dev/null 2>&1 || cargo install --locked --quiet cargo-fuzz
# Sanitizer flags are unstable; the stable toolchain takes them with this.
export RUSTC_BOOTSTRAP=1
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/fuzz"

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
for target in fuzz/fuzz_targets/*.rs; do
    name=$(basename "$target" .rs)
    mkdir -p "$scratch/$name" # new inputs go here; the committed corpus is only read
    echo "fuzz: $name for $seconds s"
    if ! cargo fuzz run "$name" "$scratch/$name" "fuzz/corpus/$name" -- \
        -max_total_time="$seconds" -rss_limit_mb=256 -timeout=1 -print_final_stats=1 \
        >"$scratch/$name.log" 2>&1; then
        tail -n 60 "$scratch/$name.log"
        echo "fuzz: $name FAILED" >&2
        exit 1
    fi
    grep -E 'stat::(number_of_executed_units|new_units_added|peak_rss_mb)' "$scratch/$name.log"
done
