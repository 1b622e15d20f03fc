#!/bin/sh
# fuzz.sh SECONDS: runs every fuzz target, all together for about so long, each at most 10 s per minute of it.
set -eu
targets=$(grep -rnE '^func Fuzz[A-Za-z0-9_]+\(' --include='*_test.go' --exclude-dir=tools --exclude-dir=testdata . |
	sed -E 's|^\./(.*)/[^/]*:[0-9]+:func (Fuzz[A-Za-z0-9_]+)\(.*|./\1 \2|' | sort -u)
count=$(printf '%s\n' "$targets" | grep -c .) || { echo "no fuzz targets found" >&2; exit 1; }
each=$(($1 / count))
most=$(($1 / 6))
[ "$each" -le "$most" ] || each=$most
[ "$each" -ge 1 ] || each=1
echo "$count fuzz targets, $each s each"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
printf '%s\n' "$targets" | while read -r package target; do
	if go test -run '^$' -fuzz "^$target\$" -fuzztime "${each}s" -fuzzminimizetime 1s -timeout 30m "$package" >"$log" 2>&1; then
		printf 'ok  \t%s %s\t%s\n' "$package" "$target" "$(grep -o 'execs: [0-9]*' "$log" | tail -n 1)"
	elif grep -q 'context deadline exceeded' "$log" && ! grep -q 'Failing input' "$log"; then
		# The fuzzer now and then reports its own time limit as a failure.
		printf 'ok  \t%s %s\t(stopped by its time limit)\n' "$package" "$target"
	else
		cat "$log" >&2
		exit 1
	fi
done
