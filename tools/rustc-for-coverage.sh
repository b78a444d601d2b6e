#!/bin/sh
# Cargo's compiler wrapper for tools/coverage.sh. As a workspace wrapper it leaves dependencies as they are, so that
# they, and RocksDB above all, are not compiled anew. Branches are an unstable option, which the variable lets through.
export RUSTC_BOOTSTRAP=1
exec "$@" -C instrument-coverage -Z coverage-options=branch
