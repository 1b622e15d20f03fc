#!/bin/sh
# setup.sh PROGRAM...: installs the programs that are missing, or says what to install.
set -eu
command -v go >/dev/null || { echo "please install Go $(sed -n 's/^go //p' go.mod) or newer" >&2; exit 1; }
missing=
for program; do
	command -v "$program" >/dev/null || missing="$missing $program"
done
[ -n "$missing" ] || exit 0
case "$missing" in *gcc*) missing="$missing libc6-dev" ;; esac
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
	echo "please install:$missing" >&2
	exit 1
fi
apt-get update -qq
# shellcheck disable=SC2086 # one word a package
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing
