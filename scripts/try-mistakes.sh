#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Apply mistakes to the patched tree, one at a time, and count how many of them the
# tests notice:
#
#	scripts/try-mistakes.sh --from DIR v6.16
#
# Somebody who knows neither the tests nor earlier mistakes makes them. The steps are the
# last lines of this file, in order.

set -euo pipefail

SCRIPTS_DIR=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd -P)
. "$SCRIPTS_DIR/lib/common.sh"
. "$SCRIPTS_DIR/lib/options.sh"
. "$SCRIPTS_DIR/lib/pin.sh"
. "$SCRIPTS_DIR/lib/arch.sh"
. "$SCRIPTS_DIR/lib/build.sh"

# Percent of the mistakes that the tests have to notice
GOAL=85

print_usage()
{
	cat <<END
usage: scripts/try-mistakes.sh --from DIR [options] TAG

Applies each mistake in DIR to a copy of the patched tree of TAG, builds perf and runs
the tests until one of them fails. As root, after scripts/apply-and-build.sh TAG.
TAG is one of: $(pin__list | paste -s -d ' ')

A mistake is a file NAME.diff: one change of the code, as diff -p1 for the top of the
tree. A file NAME.reason tells why no test notices it; if it begins with "equivalent:",
no user could notice it either, and the mistake does not count. A mistake that does not
apply or compile does not count. Tests that fail without a mistake are ignored, and named.

  --from DIR        the mistakes
  --out DIR         of the copy, its build, and the file results, from which the next
                    run goes on (default: out/TAG/mistakes)
  --jobs N          parallel jobs of make (default: number of CPUs)
  -h, --help        this text

The last line is "N caught, N survived, N equivalent, N skipped".
Exit status: 0 at least $GOAL % of the mistakes that count are caught, and each survivor has
its reason, 1 otherwise, 2 could not run.
END
}

parse_options()
{
	options__parse "$@" <<-'END'
		--from:		OPT_FROM
		--out:		OPT_OUT
		--jobs:		JOBS
	END
}

check_options()
{
	pin__check_tag "$TAG"
	[[ $JOBS =~ ^[1-9][0-9]*$ ]] || die_usage "--jobs $JOBS: not a number from 1 up"
	[[ -n $OPT_FROM ]] || die_usage "--from is missing"
	mapfile -t MISTAKES < <(find "$OPT_FROM" -name '*.diff' 2>/dev/null | sort)
	((${#MISTAKES[@]})) || die "$OPT_FROM has no mistakes" "name a directory with NAME.diff"
	[[ -d $SOURCE/tools/perf ]] || die "there is no patched tree $SOURCE" "scripts/apply-and-build.sh $TAG"
}

prepare()
{
	mkdir -p -- "$OUT_DIR" || die "cannot create $OUT_DIR" "use another --out"
	take_lock "$OUT_DIR/lock" "$OUT_DIR"
	log_to "$OUT_DIR/log"
	touch "$OUT_DIR/results"
	rm -rf -- "$TREE_DIR"
	cp -a -- "$SOURCE" "$TREE_DIR"
	build__load_args
	run_logged "build perf without a mistake" build__make || die_logged "perf does not build" "see the log"
}

# Prints the names of the tests that fail; with "first" only until one fails that does not
# fail without a mistake.
run_tests()
{
	local line runner

	exec {runner}< <(exec "$SCRIPTS_DIR/run-selftests.sh" --no-install --quiet --out "$OUT_DIR" \
		--perf "$BUILD_DIR/perf" "$TAG" 2>&1)
	while read -r line <&"$runner"; do
		printf '%s\n' "$line" >>"$OUT_DIR/tests.log"
		[[ $line = 'FAILED '* ]] || continue
		line=${line#FAILED  }
		[[ $1 = all ]] || ! grep -q -x -F -e "${line%% (*}" "$OUT_DIR/known" || continue
		printf '%s\n' "${line%% (*}"
		[[ $1 = all ]] || kill "$!" 2>/dev/null || :
		[[ $1 = all ]] || break
	done
	wait "$!" || :
	exec {runner}<&-
	tail -n 1 "$OUT_DIR/tests.log" | grep -q ' passed, ' || [[ $1 != all ]] ||
		die "the tests could not run" "see $OUT_DIR/tests.log"
}

find_known_failures()
{
	[[ ! -f $OUT_DIR/known ]] || return 0
	msg "run the tests without a mistake"
	run_tests all >"$OUT_DIR/known.part"
	mv -- "$OUT_DIR/known.part" "$OUT_DIR/known"
	sed 's/^/  fails without a mistake: /' "$OUT_DIR/known"
}

# Prints the verdict, a tab, and the test or what is wrong.
try_mistake()
{
	local mistake=$1 caught

	: >"$OUT_DIR/tests.log"
	patch -d "$TREE_DIR" -p1 --force --fuzz=0 --no-backup-if-mismatch -i "$mistake" >"$OUT_DIR/patch.log" 2>&1 ||
		{ printf 'skipped\tdoes not apply\n'; return; }
	build__make >"$OUT_DIR/make.log" 2>&1 || { printf 'skipped\tdoes not compile\n'; return; }
	caught=$(run_tests first)
	if [[ -n $caught ]]; then
		printf 'caught\t%s\n' "$caught"
	elif ! tail -n 1 "$OUT_DIR/tests.log" | grep -q ' passed, '; then
		die "the tests could not run with $mistake" "see $OUT_DIR/tests.log"
	else
		printf 'survived\t\n'
	fi
}

# Files that the mistake has changed become as they were.
undo_mistake()
{
	local file

	while read -r file; do
		rm -f -- "$TREE_DIR/$file"
		cp -p -- "$SOURCE/$file" "$TREE_DIR/$file"
		touch -- "$TREE_DIR/$file"
	done < <(sed -n 's,^+++ b/\([^[:space:]]*\).*,\1,p' "$1")
}

try_mistakes()
{
	local mistake name result n=0

	for mistake in "${MISTAKES[@]}"; do
		name=$(basename -- "$mistake" .diff)
		n=$((n + 1))
		grep -q "^$name"$'\t' "$OUT_DIR/results" && continue
		result=$(try_mistake "$(realpath -- "$mistake")")
		undo_mistake "$mistake"
		printf '%s\t%s\n' "$name" "$result" >>"$OUT_DIR/results"
		msg "$n/${#MISTAKES[@]} $name: ${result/$'\t'/ }"
	done
}

# A survivor needs its reason.
print_totals()
{
	local mistake name verdict why
	local -A count=([caught]=0 [survived]=0 [equivalent]=0 [skipped]=0)
	local unexplained=0

	for mistake in "${MISTAKES[@]}"; do
		name=$(basename -- "$mistake" .diff)
		IFS=$'\t' read -r _ verdict why < <(grep "^$name"$'\t' "$OUT_DIR/results")
		if [[ $verdict = survived ]]; then
			why=$(cat -- "${mistake%.diff}.reason" 2>/dev/null) || unexplained=$((unexplained + 1))
			[[ $why != equivalent:* ]] || verdict=equivalent
			printf '%s %s: %s\n' "${verdict^^}" "$name" "${why:-no reason is given}"
		fi
		count[$verdict]=$((count[$verdict] + 1))
	done
	printf '%d caught, %d survived, %d equivalent, %d skipped\n' \
		"${count[caught]}" "${count[survived]}" "${count[equivalent]}" "${count[skipped]}"
	((!unexplained && count[caught] &&
		100 * count[caught] >= GOAL * (count[caught] + count[survived]))) || end_failed
}

OPT_FROM='' OPT_OUT='' OPT_SANITIZE=no
JOBS=$(nproc)

parse_options "$@"
SOURCE=$REPO_DIR/out/$TAG/linux
OUT_DIR=$(realpath -m -- "${OPT_OUT:-$REPO_DIR/out/$TAG/mistakes}")
TREE_DIR=$OUT_DIR/linux
BUILD_DIR=$OUT_DIR/build
check_options
arch__load ''
check_root
prepare
find_known_failures
try_mistakes
print_totals
