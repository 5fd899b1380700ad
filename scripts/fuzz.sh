#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Fuzz perf's readers of BPF metadata, the record and the block in the header,
# with libFuzzer, AddressSanitizer and UndefinedBehaviorSanitizer:
#
#	scripts/fuzz.sh v6.16			for half an hour
#	scripts/fuzz.sh --replay v6.16		only what is in selftests/fuzz/corpus
#
# selftests/fuzz/fuzz.c tells what an input is and what a finding. The steps are
# the last lines of this file, in order.

set -euo pipefail

SCRIPTS_DIR=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd -P)
. "$SCRIPTS_DIR/lib/common.sh"
. "$SCRIPTS_DIR/lib/options.sh"
. "$SCRIPTS_DIR/lib/pin.sh"
. "$SCRIPTS_DIR/lib/arch.sh"
. "$SCRIPTS_DIR/lib/build.sh"

SELFTESTS_DIR=$REPO_DIR/selftests
SOURCE=$SELFTESTS_DIR/fuzz/fuzz.c
CORPUS=$SELFTESTS_DIR/fuzz/corpus

# Limits of an input, in bytes and seconds
MAX_SIZE=16384
MAX_TIME=25

print_usage()
{
	cat <<END
usage: scripts/fuzz.sh [options] TAG

Fuzzes the readers of BPF metadata in perf of the pinned kernel TAG with this
repository's patches.
TAG is one of: $(pin__list | paste -s -d ' ')

  --time SECONDS    how long to fuzz (default: 1800)
  --seed NUMBER     of the random numbers (default: the time)
  --replay          only read each input of the corpus, once; what CI does
  --add FILE        first add the metadata of a perf.data FILE to the corpus, and
                    what the run finds that reaches other code

  --out DIR         of the perf that is fuzzed, and of fuzz/ with what the run
                    writes (default: out/TAG-sanitize)
  --mirror DIR      passed on to apply-and-build.sh
  --jobs N          that fuzz at once (default: number of CPUs)
  --no-install      install nothing; refuse and print the apt line
  -h, --help        this text

Results in DIR/fuzz:
  corpus/           inputs that reached new code; the next run starts with them
  findings/         inputs that broke perf, each with its report
  log               of the last run

Exit status: 0 nothing found, 1 something found, 2 could not run.
END
}

parse_options()
{
	options__parse "$@" <<-'END'
		--time:		OPT_TIME
		--seed:		OPT_SEED
		--replay	OPT_REPLAY	yes
		--add:		OPT_ADD[]
		--out:		OPT_OUT
		--mirror:	OPT_MIRROR
		--jobs:		JOBS
		--no-install	OPT_INSTALL	no
	END
}

check_options()
{
	local file

	pin__check_tag "$TAG"
	[[ $OPT_TIME =~ ^[1-9][0-9]*$ ]] || die_usage "--time $OPT_TIME: not a number of seconds from 1 up"
	[[ $OPT_SEED =~ ^[1-9][0-9]*$ ]] || die_usage "--seed $OPT_SEED: not a number from 1 up"
	[[ $JOBS =~ ^[1-9][0-9]*$ ]] || die_usage "--jobs $JOBS: not a number from 1 up"
	[[ $OPT_REPLAY = no || ${#OPT_ADD[@]} -eq 0 ]] || die_usage "--replay and --add exclude each other"
	for file in "${OPT_ADD[@]}"; do
		[[ -f $file ]] || die "--add $file: no such file" "name a perf.data file"
	done
}

resolve_paths()
{
	OUT_DIR=$(realpath -m -- "${OPT_OUT:-$REPO_DIR/out/$TAG-sanitize}")
	TREE_DIR=$OUT_DIR/linux
	BUILD_DIR=$OUT_DIR/build
	STATE_DIR=$OUT_DIR/.state
	PERF=$OUT_DIR/perf
	FUZZ_DIR=$OUT_DIR/fuzz
	FUZZ=$FUZZ_DIR/fuzz
	LOG=$FUZZ_DIR/log
}

apply_and_build()
{
	"$SCRIPTS_DIR/apply-and-build.sh" "${OPTIONS_PASSED[@]}" --sanitize --out "$OUT_DIR" "$TAG" ||
		die "there is no perf to fuzz" "see above; then run this again"
}

open_output()
{
	mkdir -p -- "$FUZZ_DIR/corpus" "$FUZZ_DIR/findings" "$FUZZ_DIR/templates" ||
		die "cannot create $FUZZ_DIR" "use another --out"
	take_lock "$FUZZ_DIR/lock" "$FUZZ_DIR"
	log_to "$FUZZ_DIR/build.log"
}

# --- build --------------------------------------------------------------------

# The fuzzer is linked by perf's own make, with main() replaced.
build_fuzz()
{
	local runtime

	runtime=$(clang -print-file-name="libclang_rt.fuzzer_no_main-$(uname -m).a")
	build__load_args
	BUILD_ARGS+=(EXTRA_PERFLIBS="-Wl,--wrap=main $FUZZ_DIR/fuzz.o $runtime -lstdc++")
	make -C "$TREE_DIR/tools/perf" -f "$SELFTESTS_DIR/fuzz/Makefile" BUILD="$BUILD_DIR" OUTPUT="$FUZZ_DIR" &&
		rm -f -- "$BUILD_DIR/perf" &&
		build__make &&
		mv -f -- "$BUILD_DIR/perf" "$FUZZ"
}

# apply-and-build.sh, which run-selftests.sh --sanitize calls, builds there as well.
prepare_fuzz()
{
	[[ ! $FUZZ -nt $PERF || ! $FUZZ -nt $SOURCE ]] || return 0
	take_lock "$STATE_DIR/lock" "$OUT_DIR"
	run_logged "build the fuzzer" build_fuzz || die_logged "the fuzzer does not build" "see the log"
	release_lock
}

perfgen()
{
	python3 "$SELFTESTS_DIR/lib/perfgen.py" "$@" >/dev/null
}

write_templates()
{
	local dir=$FUZZ_DIR/templates

	[[ $(printf '\001\000' | od -An -tu2) -eq 1 ]] || die "this machine is big-endian" "fuzz on another one"
	{ perfgen write good "$dir/file-native" &&
		perfgen write good "$dir/file-swapped" --big &&
		perfgen write good "$dir/pipe-native" --pipe &&
		perfgen write good "$dir/pipe-swapped" --pipe --big; } ||
		die "cannot write $dir" "free some space or use another --out"
}

# --- run ----------------------------------------------------------------------

# Seeds are the cases of perfgen.py, most of them malformed, and the files of --add.
write_seeds()
{
	local case dir=$FUZZ_DIR/seeds

	mkdir -p -- "$dir"
	for case in $(python3 "$SELFTESTS_DIR/lib/perfgen.py" list); do
		perfgen write "$case" "$dir/$case"
		perfgen write "$case" "$dir/$case.pipe" --pipe
	done
	python3 "$SELFTESTS_DIR/fuzz/inputs.py" "$FUZZ_DIR/corpus" "$dir"/* 2>/dev/null
	((${#OPT_ADD[@]} == 0)) || python3 "$SELFTESTS_DIR/fuzz/inputs.py" "$FUZZ_DIR/corpus" "${OPT_ADD[@]}"
	rm -r -- "$dir"
}

# Leaks are not looked for: perf leaves memory for its exit to free, and that would be
# found first.
fuzz()
{
	env PBM_FUZZ_TEMPLATES="$FUZZ_DIR/templates" \
		ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
		"$FUZZ" -max_len="$MAX_SIZE" -timeout="$MAX_TIME" -rss_limit_mb=4096 \
		-artifact_prefix="$FUZZ_DIR/findings/" "$@"
}

# An input that was not read is a failure, too.
replay_corpus()
{
	local inputs

	mapfile -t inputs < <(find "$CORPUS" -type f | sort)
	((${#inputs[@]})) || die "$CORPUS is empty" "restore it from git"
	fuzz "${inputs[@]}" >"$LOG" 2>&1 || die_found
	[[ $(grep -c '^Executed ' "$LOG") = "${#inputs[@]}" ]] || die_found
	msg "read ${#inputs[@]} inputs, nothing found"
}

run_fuzz()
{
	msg "seed      $OPT_SEED"
	msg "time      $OPT_TIME s, $JOBS at once"
	msg "log       $LOG"
	touch -- "$FUZZ_DIR/started"
	set -m
	fuzz -fork="$JOBS" -seed="$OPT_SEED" -max_total_time="$OPT_TIME" \
		"$FUZZ_DIR/corpus" "$CORPUS" >"$LOG" 2>&1 </dev/null &
	STEP_PIDS=("$!")
	set +m
	LOG_FILE=$LOG
	start_ticker "fuzz"
	wait "${STEP_PIDS[0]}" || FUZZ_STATUS=$?
	STEP_PIDS=()
	stop_ticker
	# The status is that of one job; another may have been cut off with its report.
	[[ $FUZZ_STATUS = 0 && -z $(find "$FUZZ_DIR/findings" -newer "$FUZZ_DIR/started") ]] || die_found
	msg "nothing found: $(grep '^#' "$LOG" | tail -n 1)"
}

die_found()
{
	printf '%s: a finding; the log ends:\n' "$PROGRAM" >&2
	tail -n 40 "$LOG" | sed 's/^/  | /' >&2
	printf '%s: full log: %s, inputs: %s\n' "$PROGRAM" "$LOG" "$FUZZ_DIR/findings" >&2
	printf '%s: once it is mended, put the input into %s\n' "$PROGRAM" "$CORPUS" >&2
	end_failed
}

merge_corpus()
{
	((${#OPT_ADD[@]})) || return 0
	run_logged "add inputs to $CORPUS" fuzz -merge=1 "$CORPUS" "$FUZZ_DIR/corpus" ||
		die_logged "the inputs can't be added" "see the log"
}

OPT_TIME=1800 OPT_SEED=$(date +%s) OPT_REPLAY=no OPT_ADD=() OPT_OUT=''
# shellcheck disable=SC2034 # build.sh reads it
OPT_SANITIZE=address
FUZZ_STATUS=0
JOBS=$(nproc)

parse_options "$@"
check_options
arch__load ''
resolve_paths
apply_and_build
open_output
prepare_fuzz
write_templates
if [[ $OPT_REPLAY = yes ]]; then
	replay_corpus
else
	write_seeds
	run_fuzz
	merge_corpus
fi
