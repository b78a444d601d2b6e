#!/usr/bin/env bash
# Which lines and branches of the log, the codec, the model, the engine and the snapshot rows the tests execute, those
# that inject faults among them. Prints one line for each file and the sum, and lists the lines that nothing executes in
# OUT/missed.txt. Programs that are killed tell nothing, so what only they do counts as missed.
#
#   tools/coverage.sh           fails below 95 % of lines
set -euo pipefail
cd "$(dirname "$0")/.."
cache=${XDG_CACHE_HOME:-$HOME/.cache}/sharestate
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$cache/target} RUSTC_WORKSPACE_WRAPPER=$PWD/tools/rustc-for-coverage.sh
out=${COVERAGE_OUT:-$CARGO_TARGET_DIR/coverage}
least=95

bin=$(rustc --print target-libdir)/../bin
if [ ! -x "$bin/llvm-cov" ]; then rustup component add llvm-tools; fi

rm -rf "$out" && mkdir -p "$out/raw"
export LLVM_PROFILE_FILE=$out/raw/%m_%p.profraw
cargo test --locked --all-features --lib --tests --no-run --message-format=json >"$out/build.json"
mapfile -t programs < <(sed -nE 's/.*"profile":\{[^}]*"test":true\}.*"executable":"([^"]+)".*/\1/p' "$out/build.json")
for program in "${programs[@]}"; do
    # Its limits of memory are made for programs that do not count what they execute.
    [[ $program == */process-* ]] && continue
    echo "coverage: $(basename "$program")" >&2
    CARGO_MANIFEST_DIR=$PWD "$program" >"$out/$(basename "$program").log" 2>&1 ||
        { tail -n 40 "$out/$(basename "$program").log" >&2; exit 1; }
done

"$bin/llvm-profdata" merge --sparse "$out"/raw/*.profraw -o "$out/profile" && rm -r "$out/raw"
objects=("${programs[0]}")
for program in "${programs[@]:1}" "$CARGO_TARGET_DIR/debug/sharestate"; do objects+=("--object=$program"); done
measured=(src/log src/codec src/model src/engine src/snapshot)
"$bin/llvm-cov" export --format=lcov --instr-profile="$out/profile" "${objects[@]}" "${measured[@]}" >"$out/lcov.info"
awk -F'[:,]' -v root="$PWD/" -v least=$least -v missed="$out/missed.txt" '
    function percent(part, of) { return of ? 100 * part / of : 100 }
    function tell(name, h, l, bh, b) {
        printf "%-36s lines %5d of %5d (%5.1f %%)  branches %4d of %4d (%5.1f %%)\n", name, h, l, percent(h, l), bh, b,
            percent(bh, b)
    }
    $1 == "SF" { file = $2; sub(root, "", file); h = l = bh = b = 0 }
    $1 == "DA" { l++; if ($3 > 0) h++; else print file ":" $2 > missed }
    $1 == "BRDA" { b++; if ($5 != "-" && $5 > 0) bh++ }
    $1 == "end_of_record" { tell(file, h, l, bh, b); H += h; L += l; BH += bh; B += b }
    END {
        tell("all", H, L, BH, B)
        printf "coverage lines=%.1f branches=%.1f\n", percent(H, L), percent(BH, B)
        exit percent(H, L) < least
    }' "$out/lcov.info"
