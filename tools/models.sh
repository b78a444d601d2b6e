#!/bin/sh
# Runs the concurrency models (src/engine/models.rs): the real engine in SCHEDULES random orders of its threads each.
# Then puts bugs back that only some orders show (tools/seeded-models.tsv); their models must fail.
#
#   tools/models.sh 10000
set -eu
cd "$(dirname "$0")/.."
export SHARESTATE_SCHEDULES="${1:-1000}"
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/sharestate/target}/models"
# For all crates, because it also makes shuttle a dependency; the bugs are for this crate only.
export RUSTFLAGS="--cfg sharestate_shuttle"
export SHARESTATE_CFG=sharestate_seeded RUSTC_WORKSPACE_WRAPPER="$PWD/tools/rustc-with-cfg.sh"
models() {
    cargo test --quiet --locked --no-default-features --features testing --lib "$@" -- --nocapture
}

models engine::models
tab=$(printf '\t')
while IFS="$tab" read -r id _ _ model; do
    if SHARESTATE_SEEDED=$id models "engine::models::$model" >/dev/null 2>&1; then
        echo "models: $model passes with the bug $id" >&2
        exit 1
    fi
    echo "model=$model bug=$id caught"
done <tools/seeded-models.tsv
