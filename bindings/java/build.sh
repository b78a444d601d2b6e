#!/usr/bin/env bash
# Builds the native library and the jar that holds it: store/target/sharestate-VERSION.jar.
# Needs cargo, a C++ toolchain with libclang (as the crate itself), Java 17 and Maven.
set -euo pipefail
cd "$(dirname "$0")"

cache=${XDG_CACHE_HOME:-$HOME/.cache}
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$cache/sharestate/target}

cargo build --locked --manifest-path native/Cargo.toml

staged=store/target/native/sharestate/native/linux-$(uname -m)
mkdir -p "$staged"
# Without its debug information the library is a fifth of the size.
strip --strip-debug -o "$staged/libsharestate_jni.so" "$CARGO_TARGET_DIR/debug/libsharestate_jni.so"

mvn -q -B -pl store -am -DskipTests "$@" package
