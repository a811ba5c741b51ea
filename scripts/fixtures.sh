#!/usr/bin/env bash
# Build every real transcript at hand into a store of its own and verify the
# result.
#
# usage: scripts/fixtures.sh HANDOFFCTL TRANSCRIPTS
#
# TRANSCRIPTS has directories named after harnesses, some of those listed below.
# A transcript may build (0) or have no usable turn (4); what was built must
# verify. Prints a line for each file that does neither, and the counts; exits 1
# if there was any, 2 if there was nothing to do.
set -u

if [ $# -ne 2 ]; then
	sed -n 's/^# usage: /usage: /p' "$0" >&2
	exit 2
fi
ctl=$(realpath "$1") dir=$(realpath "$2")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

built=0 empty=0 failed=0 n=0

# run VERB...: the client with nothing of the caller's but the path.
run() {
	(cd "$work/home" && env -i PATH="$PATH" HOME="$work/home" HANDOFFS_ROOT="$work/store" \
		XDG_RUNTIME_DIR="$work/home" timeout 120 "$ctl" "$@" </dev/null >"$work/out" 2>&1)
}

fail() {
	failed=$((failed + 1))
	echo "FAIL ${file#"$dir"/}: $1: $(tail -n 1 "$work/out" | cut -c1-300)"
}

while IFS= read -r -d '' file; do
	n=$((n + 1))
	rm -rf "$work/store" "$work/home"
	mkdir -p "$work/home"
	run build --local --source "$file"
	code=$?
	case $code in
	0) ;;
	4)
		empty=$((empty + 1))
		if [ -n "$(find "$work/store" -name manifest.json 2>/dev/null)" ]; then
			fail "no usable turn, but a session was left behind"
		fi
		continue
		;;
	*)
		fail "build exits $code"
		continue
		;;
	esac
	run verify --all --local
	code=$?
	if [ $code -ne 0 ]; then
		fail "verify --all exits $code"
		continue
	fi
	built=$((built + 1))
done < <(for harness in claude-code codex gemini-cli pi copilot-cli cursor kimi factory-droid cline aider kiro amp; do
	find "$dir/$harness" -type f ! -name '*.meta.json' -print0 2>/dev/null
done | sort -z)

echo "fixtures: $n files, $built built and verified, $empty without a usable turn, $failed failed"
if [ $n -eq 0 ]; then
	echo "fixtures: nothing below $dir" >&2
	exit 2
fi
[ $failed -eq 0 ]
