#!/usr/bin/env bash
# Two homes work on one project with processes that are killed at random: build, promote, contract, merge, rename and
# federated-merge. In the end every handoff must verify and hold every turn once.
#
#   interleave.sh HANDOFFCTL [OPERATIONS]
set -u
exec 3>&2 2>/dev/null
ctl=${1:?path of handoffctl} ops=${2:-400}
work=$(mktemp -d "${TMPDIR:-/tmp}/interleave.XXXXXX") || exit 1
[ -n "${KEEP:-}" ] || trap 'rm -rf "$work"' EXIT
one=11111111-1111-4111-8111-111111111111 two=22222222-2222-4222-8222-222222222222
n=0 killed=0
run() { # HOME LIMIT ARGUMENTS...: the verb, killed after LIMIT milliseconds if that is not 0
  local home=$1 limit=$2
  shift 2
  if [ "$limit" = 0 ]; then
    HANDOFFS_ROOT=$work/$home/store "$ctl" --local "$@" >>"$work/log" 2>&1
  else
    HANDOFFS_ROOT=$work/$home/store timeout -s KILL "0.$(printf %03d "$limit")" "$ctl" --local "$@" >>"$work/log" 2>&1
    [ $? = 137 ] && killed=$((killed + 1))
  fi
}
say() { # HOME SESSION
  n=$((n + 1))
  printf '{"role":"user","text":"continue","ts":"%s","thread":"--shared--"}\n' "$(date -u -d "@$((1767225600 + n))" +%FT%TZ)" >>"$work/$1/$2.jsonl"
}
mkdir -p "$work/a" "$work/b"
for h in a b; do say $h $one; say $h $two; done
for ((i = 0; i < ops; i++)); do
  h=a o=b
  ((RANDOM % 2)) && h=b o=a
  s=$one
  ((RANDOM % 2)) && s=$two
  limit=$((1 + RANDOM % 40))
  case $((RANDOM % 8)) in
    0 | 1 | 2) say $h $s; run $h $limit build --source "$work/$h/$s.jsonl" ;;
    3) run $h $limit promote $s ;;
    4) run $h $limit contract set $s --risks "$i" ;;
    5) run $h $limit merge $one $two --render ;;
    6) run $h $limit rename $s "p$((RANDOM % 3))" ;;
    7) run $h $limit federated-merge --from "$work/$o/store" ;;
  esac
done
bad=0
for round in 1 2; do
  for h in a b; do
    o=b; [ $h = b ] && o=a
    for s in $one $two; do run $h 0 build --source "$work/$h/$s.jsonl" || bad=1; done
    run $h 0 federated-merge --from "$work/$o/store" || { [ $round = 1 ] || bad=1; }
    run $h 0 merge $one $two --render || bad=1
  done
done
for h in a b; do
  HANDOFFS_ROOT=$work/$h/store "$ctl" --local verify --all >"$work/verify" 2>&1 || { cat "$work/verify"; bad=1; }
  for s in $one $two "$one+merge+$two"; do
    want=$(for x in a b; do for t in $one $two; do case $s in *$t*) cat "$work/$x/$t.jsonl" ;; esac; done; done | wc -l)
    HANDOFFS_ROOT=$work/$h/store "$ctl" --local show "$s" --timeline >"$work/timeline"
    got=$(wc -l <"$work/timeline") unique=$(sed 's/.*"ts":"\([^"]*\)".*/\1/' "$work/timeline" | sort -u | wc -l)
    [ "$want" = "$got" ] && [ "$got" = "$unique" ] || { echo "$h $s: $got turns, $unique of them different, want $want"; bad=1; }
  done
done
[ $bad = 0 ] || tail -20 "$work/log"
echo "$ops operations, $killed killed, $n turns: $([ $bad = 0 ] && echo every handoff verifies and holds every turn once || echo FAILED)"
exit $bad
