#!/bin/sh
# Licences, duplicate bans and sources of all dependencies. Advisories need a database from the network and are left
# to whoever has it: `cargo deny check advisories`.
set -eu
command -v cargo-deny >/dev/null 2>&1 || cargo install --locked --quiet cargo-deny
cargo deny --all-features check bans licenses sources
