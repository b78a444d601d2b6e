#!/bin/sh
# Installs what the build needs and does not find: a C++ compiler (RocksDB) and libclang (bindgen); and the
# commands named as arguments, each with its package behind a colon where that has another name.
# Where it cannot install, it says exactly what to install, and fails.
set -eu

missing=""
command -v c++ >/dev/null 2>&1 || missing="$missing g++"
command -v cc >/dev/null 2>&1 || missing="$missing gcc"

have_libclang() {
    [ -n "${LIBCLANG_PATH:-}" ] && return 0
    for library in /usr/lib/llvm-*/lib/libclang.so* /usr/lib/llvm-*/lib/libclang-[0-9]*.so* \
        /usr/lib/*/libclang.so* /usr/lib/*/libclang-[0-9]*.so* /usr/lib64/libclang.so*; do
        [ -e "$library" ] && return 0
    done
    return 1
}
have_libclang || missing="$missing libclang-dev"
for tool in "$@"; do
    command -v "${tool%%:*}" >/dev/null 2>&1 || missing="$missing ${tool#*:}"
done

[ -z "$missing" ] && exit 0

if command -v apt-get >/dev/null 2>&1; then
    as_root=""
    if [ "$(id -u)" -ne 0 ]; then
        if command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
            as_root="sudo"
        else
            echo "setup: please install, as root: apt-get install -y$missing" >&2
            exit 1
        fi
    fi
    echo "setup: installing$missing"
    $as_root apt-get update -qq
    # shellcheck disable=SC2086
    DEBIAN_FRONTEND=noninteractive $as_root apt-get install -y -qq --no-install-recommends $missing >/dev/null
    exit 0
fi
echo "setup: please install a C and C++ compiler and libclang (Debian's names:$missing)" >&2
exit 1
