#!/bin/sh
# Installs header, shared and static library and pkg-config file below PREFIX (default /usr/local), from
# the target directory TARGET, where `cargo build -p sharestate-c` has put the libraries.
#
#   bindings/c/install.sh [PREFIX [TARGET]]
#
# DESTDIR, if set, goes before PREFIX in what is written, not in the pkg-config file.
set -eu
cd "$(dirname "$0")"

prefix="${1:-/usr/local}"
target="${2:-${CARGO_TARGET_DIR:-../../target}/debug}"
to="${DESTDIR:-}$prefix"
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)

for library in "$target/libsharestate_c.so" "$target/libsharestate_c.a"; do
    if [ ! -f "$library" ]; then
        echo "install: $library is missing: cargo build -p sharestate-c" >&2
        exit 1
    fi
done

mkdir -p "$to/include" "$to/lib/pkgconfig"
install -m 644 include/sharestate.h "$to/include/sharestate.h"
install -m 755 "$target/libsharestate_c.so" "$to/lib/libsharestate.so.1"
ln -sf libsharestate.so.1 "$to/lib/libsharestate.so"
install -m 644 "$target/libsharestate_c.a" "$to/lib/libsharestate.a"
sed -e "s|@PREFIX@|$prefix|" -e "s|@VERSION@|$version|" sharestate.pc.in >"$to/lib/pkgconfig/sharestate.pc"
echo "install: sharestate $version below $to"
