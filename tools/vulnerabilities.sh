#!/bin/sh
# Looks for known vulnerabilities that our code can reach, in the database pinned
# by tools/go.mod. Fails for any that is not in tools/vulnerabilities.txt.
set -eu
database=$(go -C tools mod download -json golang.org/x/vulndb | sed -n 's/^[[:space:]]*"Dir": "\(.*\)",*$/\1/p')
report=$(mktemp)
trap 'rm -f "$report"' EXIT
status=0
bin/govulncheck -db "file://$database/data/osv" ./... >"$report" || status=$?
if [ "$status" != 0 ] && [ "$status" != 3 ]; then # 3: something was found
	cat "$report" >&2
	exit "$status"
fi
new=0
for id in $(sed -n 's/^Vulnerability #[0-9]*: //p' "$report"); do
	if grep -q "^$id " tools/vulnerabilities.txt; then
		echo "accepted: $(grep "^$id " tools/vulnerabilities.txt)"
	else
		new=$((new + 1))
		echo "new: $id"
	fi
done
[ "$new" = 0 ] || { cat "$report" >&2; exit 1; }
