#!/bin/sh
# Makes bindings/c/include/sharestate.h from bindings/c/src; with --check says whether it is up to date.
#
# cbindgen is a tool of its own here, never a build-dependency: its syn would unify features with that of
# RocksDB's bindgen and have RocksDB compiled anew.
set -eu
cd "$(dirname "$0")/.."

VERSION=0.29.4
root="${XDG_CACHE_HOME:-$HOME/.cache}/sharestate/tools"
tool="$root/bin/cbindgen"

if [ "$("$tool" --version 2>/dev/null || true)" != "cbindgen $VERSION" ]; then
    echo "cbindgen: installing $VERSION into $root" >&2
    cargo install --quiet --locked --root "$root" --target-dir "$root/build" --version "$VERSION" cbindgen
fi

header=bindings/c/include/sharestate.h
made=$(mktemp)
trap 'rm -f "$made"' EXIT
"$tool" --quiet --config bindings/c/cbindgen.toml --output "$made" bindings/c

case "${1:-}" in
    --check)
        if ! diff -u "$header" "$made"; then
            echo "cbindgen: $header is not what its sources say: run tools/cbindgen.sh" >&2
            exit 1
        fi
        echo "cbindgen: $header is up to date"
        ;;
    "")
        mkdir -p "$(dirname "$header")"
        cat "$made" >"$header"
        ;;
    *)
        echo "usage: tools/cbindgen.sh [--check]" >&2
        exit 2
        ;;
esac
