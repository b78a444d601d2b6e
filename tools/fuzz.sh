#!/bin/sh
# Runs every fuzz target for the given number of seconds, from its committed corpus on, and prints one line for each.
# Fails when one finds something: says where the input is and how to repeat it. What grows goes under the target
# directory, nothing into the tree.
#
# An input may take 256 MiB of memory (libFuzzer's limits) and 100 ms of processor time, a second where it plays a
# history (fuzz/src/bounded.rs).
set -eu
cd "$(dirname "$0")/.."
seconds="${1:-60}"
command -v cargo-fuzz >/dev/null 2>&1 || cargo install --locked --quiet cargo-fuzz
# Sanitizer flags are unstable; the stable toolchain takes them with this.
export RUSTC_BOOTSTRAP=1
CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$PWD/target}/fuzz"
export CARGO_TARGET_DIR
work="$CARGO_TARGET_DIR/work"
host=$(rustc -vV | sed -n 's/^host: //p')

# `cargo fuzz` knows no --locked, and would change the file.
if ! cargo fetch --locked --quiet --target "$host" --manifest-path fuzz/Cargo.toml; then
    echo "fuzz: fuzz/Cargo.lock is not up to date: cargo update --workspace --manifest-path fuzz/Cargo.toml" >&2
    exit 1
fi
mkdir -p "$work/artifacts"
if ! cargo fuzz build >"$work/build.log" 2>&1; then
    tail -n 60 "$work/build.log" >&2
    echo "fuzz: the targets do not build" >&2
    exit 1
fi

# The sanitizer keeps what was freed, up to 256 MiB of it unless told: the very bound of an input.
export ASAN_OPTIONS="quarantine_size_mb=16${ASAN_OPTIONS:+:$ASAN_OPTIONS}"
status=0
for target in fuzz/fuzz_targets/*.rs; do
    name=$(basename "$target" .rs)
    log="$work/$name.log"
    mkdir -p "$work/corpus/$name" # kept from run to run; the committed corpus is only read
    set -- "$CARGO_TARGET_DIR/$host/release/$name"
    [ -x "$1" ] || set -- "$CARGO_TARGET_DIR/release/$name"
    dict="fuzz/dictionaries/$name.dict"
    [ -f "$dict" ] && set -- "$@" "-dict=$dict"
    set -- "$@" -rss_limit_mb=256 -malloc_limit_mb=256 -timeout=10 "-artifact_prefix=$work/artifacts/$name-"
    found=0
    "$@" "-max_total_time=$seconds" -print_final_stats=1 "$work/corpus/$name" "fuzz/corpus/$name" \
        >"$log" 2>&1 || found=1
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    coverage=$(sed -n 's/.* cov: \([0-9]*\) .*/\1/p' "$log" | tail -n 1)
    corpus=$(find "$work/corpus/$name" "fuzz/corpus/$name" -type f | wc -l | tr -d ' ')
    echo "fuzz target=$name runs=${runs:-0} seconds=$seconds edges=${coverage:-0} crashes=$found corpus=$corpus"
    if [ "$found" -ne 0 ]; then
        tail -n 60 "$log" >&2
        input=$(sed -n 's/.*Test unit written to //p' "$log" | tail -n 1)
        echo "fuzz: $name found ${input:-something, see $log}" >&2
        echo "fuzz: repeat it with: ASAN_OPTIONS=$ASAN_OPTIONS $* ${input}" >&2
        status=1
    fi
done
exit "$status"
