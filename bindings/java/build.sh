#!/usr/bin/env bash
# Builds the native library and the jar that holds it: store/target/sharestate-VERSION.jar.
# Needs cargo, a C++ toolchain with libclang (as the crate itself), Java 17 and Maven.
set -euo pipefail
cd "$(dirname "$0")"

java=$(javac -version 2>&1 | sed -n 's/^javac \([0-9]*\).*/\1/p' || true)
if [ "${java:-0}" -lt 17 ] || ! command -v mvn >/dev/null; then
    echo "build: please install Java 17 or later and Maven (Debian's names: openjdk-17-jdk-headless maven)" >&2
    exit 1
fi

cache=${XDG_CACHE_HOME:-$HOME/.cache}
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$cache/sharestate/target}

cargo build --locked --manifest-path native/Cargo.toml

staged=store/target/native/sharestate/native/linux-$(uname -m)
mkdir -p "$staged"
# Without its debug information the library is a fifth of the size.
strip --strip-debug -o "$staged/libsharestate_jni.so" "$CARGO_TARGET_DIR/debug/libsharestate_jni.so"

mvn -q -B -pl store -am -DskipTests "$@" package
