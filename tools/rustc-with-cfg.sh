#!/bin/sh
# Cargo's compiler wrapper for builds with a cfg of this project, named in SHARESTATE_CFG. As a workspace
# wrapper it leaves dependencies as they are, so that they are compiled once.
exec "$@" --cfg "$SHARESTATE_CFG"
