# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Run test programs, print their results and count them.
#
# A result is a line "KIND<TAB>NAME<TAB>REASON" with the kind "ok", "not ok", "skip" or, for a test
# left out, "all" or "lacks". RESULTS is a file of such lines.
#
# Usage (after lib/common.sh):
#	report__run LOG COMMAND...	run COMMAND, write its output to LOG, and return its
#				status. End all processes that it has left
#	report__add RESULTS LOG	add the results on stdin, and print them; for a failed
#				test, also print its output
#	report__expect_failures NAMES REASON
#				print the results from stdin. If the test's name matches
#				NAMES (ERE), print a failed test as passed, and a passed test
#				as failed for this reason
#	report__compare_skips RESULTS LIST FILTER
#				turn skips that aren't in the file LIST into failures,
#				see skips.awk; without LIST, do nothing
#	report__print_totals RESULTS	print the last line; end the script if a test has
#				failed or no test has run
#
# Reads:
#	RUN_DIR		a directory of this run, on this machine

# kselftest's runner opens its output once more, so append to the log.
report__run()
{
	local log=$1 status=0

	shift
	: >"$log"
	run_step "$@" >>"$log" 2>&1 </dev/null || status=$?
	wait_for_group "$!"
	return "$status"
}

# Print all lines at once. Otherwise lines of another guest may come between them.
report__add()
{
	tee -a -- "$1" | report__print_results "$2" >"$RUN_DIR/printed"
	cat "$RUN_DIR/printed"
}

report__print_results()
{
	local log=$1 kind name reason

	while IFS=$'\t' read -r kind name reason; do
		case $kind in
		ok)	msg "ok      $name" ;;
		skip)	msg "skip    $name ($reason)" ;;
		all|lacks) ;;
		*)	printf 'FAILED  %s%s\n' "$name" "${reason:+ ($reason)}"
			report__print_failure "$log" "$name" ;;
		esac
	done
}

# report__print_failure LOG NAME: print the last 20 lines of the test NAME. If the program ended
# without a result for NAME, print the end of its output.
report__print_failure()
{
	local log=$1 name=$2

	awk -v name="$name" '
		/^# (ok|1\.\.)[ 0-9]/ { n = 0; next }
		/^# not ok [0-9]/ {
			sub(/^# not ok [0-9]+ (- )?/, "")
			sub(/ # .*/, "")
			if ($0 == name) exit
			n = 0
			next
		}
		{ line[n++] = $0 }
		END { for (i = n > 20 ? n - 20 : 0; i < n; i++) print line[i] }
	' "$log" | sed 's/^# #\{0,1\} \{0,1\}//; s/^/  | /'
	printf '  log: %s\n' "$log"
}

report__expect_failures()
{
	awk -F '\t' -v OFS='\t' -v names="$1" -v reason="$2" '
		$2 !~ names || $1 == "skip" { print; next }
		$1 == "ok" { print "not ok", $2, reason; next }
		{ print "ok", $2, "" }'
}

# If a test in the list was not skipped, only print a note. This is not a failure.
report__compare_skips()
{
	local results=$1 list=$2 filter=$3 kind name reason

	[[ -n $list ]] || return 0
	awk -v filter="$filter" -f "$SCRIPTS_DIR/lib/skips.awk" "$list" "$results" >"$results.part" ||
		die "cannot compare the skips with $list" "see above"
	while IFS=$'\t' read -r kind name reason; do
		case $kind in
		unexpected) printf 'FAILED  %s (skipped, and not in %s: %s)\n' "$name" "${list##*/}" "$reason" ;;
		missed)	msg "note    not skipped, but in ${list##*/}: $name ($reason)" ;;
		esac
	done <"$results.part"
	sed -i '/^missed\t/d; s/^unexpected\t/not ok\t/' "$results.part"
	mv -- "$results.part" "$results"
}

report__print_totals()
{
	local passed failed skipped

	read -r passed failed skipped < <(cut -f 1 "$1" |
		awk '{ n[$0]++ } END { print n["ok"] + 0, n["not ok"] + 0, n["skip"] + 0 }')
	((passed + failed)) || warn "no test ran"
	printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
	((passed && !failed)) || end_failed
}
