#!/usr/bin/env bash
# Tries the persister inside a real Kafka broker, in its own process, on loopback.
#
#   it.sh                        every test, Kafka 4.4.0
#   KAFKA_VERSION=4.2.0 it.sh    another broker
#   TESTS=TransactionsTest it.sh only these
#   it.sh speed                  both persisters side by side
#
# Needs what build.sh needs. Whatever it starts is gone when it ends, also when it is interrupted.
set -euo pipefail
cd "$(dirname "$0")"

./build.sh

# Everything temporary is in one place, and every process in one session of its own.
scratch=$(mktemp -d)
runner=
finish() {
    status=$?
    if [ -n "$runner" ]; then kill -KILL -- "-$runner" 2>/dev/null || true; fi
    rm -rf "$scratch"
    exit "$status"
}
trap finish EXIT
trap 'exit 130' INT TERM

export TMPDIR=$scratch
export MAVEN_OPTS="-Djava.io.tmpdir=$scratch ${MAVEN_OPTS:-}"
if [ "${1:-}" = speed ]; then TESTS=Speed; fi
arguments=(-B -pl store,it -am verify
    "-Dkafka.version=${KAFKA_VERSION:-4.4.0}" "-Dsharestate.it.tmp=$scratch")
if [ -n "${TESTS:-}" ]; then
    arguments+=("-Dtest=$TESTS" -Dsurefire.failIfNoSpecifiedTests=false)
fi
rm -rf {store,it}/target/surefire-reports
setsid mvn "${arguments[@]}" &
runner=$!
wait "$runner"

# All counts once more, on one line at the end.
shopt -s nullglob
awk -v kafka="${KAFKA_VERSION:-4.4.0}" '
    /^<testsuite / {
        for (i = 1; i <= NF; i++) {
            if (split($i, pair, "=\"") == 2) sum[pair[1]] += pair[2]
        }
    }
    match($0, /counts: [^]]*/) { said = said "; " substr($0, RSTART + 8, RLENGTH - 8) }
    END {
        printf "kafka=%s tests=%d failed=%d skipped=%d%s\n", kafka, sum["tests"],
            sum["failures"] + sum["errors"], sum["skipped"], said
        exit sum["tests"] == 0
    }' /dev/null {store,it}/target/surefire-reports/TEST-*.xml
