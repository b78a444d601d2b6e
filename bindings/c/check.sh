#!/bin/bash
# Builds the C libraries, installs them into a directory of its own, builds example and tests against them
# with pkg-config and plain cc, and runs the tests alone, under valgrind and under the address sanitizer.
# Prints a summary; fails if anything does.
#
# The features are those of every other build, so that RocksDB is not compiled anew.
set -uo pipefail
cd "$(dirname "$0")/../.."

cache="${XDG_CACHE_HOME:-$HOME/.cache}/sharestate"
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$cache/target}"
CC="${CC:-cc}"
CFLAGS=(-std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror -g)
TESTS=(handles calls callbacks trouble leave)
work=$(mktemp -d)
trap 'chmod -R u+w "$work" 2>/dev/null; rm -rf "$work"' EXIT
chmod 755 "$work"
failed=0

say() { echo "== $1"; }
fail() {
    echo "FAILED: $1" >&2
    failed=$((failed + 1))
}

say "libraries"
cargo build --locked -p sharestate-c || exit 1
bindings/c/install.sh "$work/prefix" "$CARGO_TARGET_DIR/debug" || exit 1
export PKG_CONFIG_PATH="$work/prefix/lib/pkgconfig"
export LD_LIBRARY_PATH="$work/prefix/lib"
# shellcheck disable=SC2046
shared=($(pkg-config --cflags --libs sharestate) -lpthread)
# The archive instead of the shared library.
# shellcheck disable=SC2046
static=($(pkg-config --cflags sharestate) "$work/prefix/lib/libsharestate.a" $(pkg-config --static --libs-only-l sharestate | sed 's/-lsharestate//') -lgcc_s -lc)

say "the header alone, as C and as C++"
echo '#include <sharestate.h>' >"$work/header.c"
cp "$work/header.c" "$work/header.cc"
"$CC" "${CFLAGS[@]}" $(pkg-config --cflags sharestate) -fsyntax-only "$work/header.c" || fail "header as C"
"${CXX:-c++}" -Wall -Wextra -Werror $(pkg-config --cflags sharestate) -fsyntax-only "$work/header.cc" || fail "header as C++"

say "example"
for kind in shared static; do
    declare -n link="$kind"
    if "$CC" "${CFLAGS[@]}" bindings/c/examples/embed.c -o "$work/embed-$kind" "${link[@]}"; then
        "$work/embed-$kind" "$work/store-$kind" || fail "embed, $kind"
    else
        fail "embed does not build, $kind"
    fi
done

plain=0 valgrind_clean=0 asan_clean=0
for test in "${TESTS[@]}"; do
    say "$test"
    source="bindings/c/tests/$test.c"
    "$CC" "${CFLAGS[@]}" "$source" -o "$work/$test" "${shared[@]}" || { fail "$test does not build"; continue; }
    mkdir -p "$work/plain-$test" "$work/valgrind-$test" "$work/asan-$test"
    chmod 755 "$work"/*-"$test"
    if timeout 120 "$work/$test" "$work/plain-$test"; then plain=$((plain + 1)); else fail "$test"; fi

    if command -v valgrind >/dev/null 2>&1; then
        log="$work/$test.valgrind"
        # A store that is left open is not lost memory, but RocksDB's inner pointers make it look so.
        leaks=full
        [ "$test" = leave ] && leaks=no
        timeout 900 valgrind --leak-check=$leaks --show-leak-kinds=definite --errors-for-leak-kinds=definite \
            --error-exitcode=9 --log-file="$log.%p" "$work/$test" "$work/valgrind-$test"
        code=$?
        cat "$log".* | grep -E "definitely lost:|ERROR SUMMARY:|no leaks are possible"
        if [ $code -eq 0 ]; then valgrind_clean=$((valgrind_clean + 1)); else cat "$log".* >&2; fail "$test under valgrind ($code)"; fi
    else
        fail "valgrind is not installed"
    fi

    "$CC" "${CFLAGS[@]}" -fsanitize=address,undefined -fno-sanitize-recover=all "$source" -o "$work/$test-asan" "${shared[@]}" \
        || { fail "$test does not build with sanitizers"; continue; }
    if timeout 300 "$work/$test-asan" "$work/asan-$test" 2>"$work/$test.asan"; then
        asan_clean=$((asan_clean + 1))
    else
        cat "$work/$test.asan" >&2
        fail "$test under the address sanitizer"
    fi
done

count=${#TESTS[@]}
echo "c-tests=$plain/$count valgrind-clean=$valgrind_clean/$count asan-clean=$asan_clean/$count failed=$failed"
[ $failed -eq 0 ]
