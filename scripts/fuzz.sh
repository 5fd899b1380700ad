#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Fuzz the code with which perf reads BPF metadata from records and from the block in the header,
# with libFuzzer, AddressSanitizer and UndefinedBehaviorSanitizer: scripts/fuzz.sh v6.16
#
# selftests/fuzz/fuzz.c describes inputs and findings.

set -euo pipefail

SCRIPTS_DIR=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd -P)
. "$SCRIPTS_DIR/lib/common.sh"
. "$SCRIPTS_DIR/lib/options.sh"
. "$SCRIPTS_DIR/lib/pin.sh"
. "$SCRIPTS_DIR/lib/arch.sh"
. "$SCRIPTS_DIR/lib/build.sh"

SELFTESTS_DIR=$REPO_DIR/selftests
CORPUS=$SELFTESTS_DIR/fuzz/corpus

print_usage()
{
	cat <<END
usage: scripts/fuzz.sh [options] TAG

Fuzzes the readers of BPF metadata in perf of the kernel TAG with this
repository's patches. It builds this perf in out/TAG-sanitize.
TAG is one of: $(pin__list_patched | paste -s -d ' ')

  --time SECONDS    how long to fuzz (default: 1800)
  --replay          do not fuzz, but read each input of the corpus once, as CI does
  --mirror DIR      passed on to apply-and-build.sh
  --jobs N          number of fuzzing processes (default: number of CPUs)
  --no-install      install nothing; if packages are missing, print the apt line and end
  -h, --help        this text

Results in out/TAG-sanitize/fuzz:
  corpus/           inputs that reached new code; the next run starts with them
  findings/         inputs that broke perf
  log               log of the last run, with reports and the seed of the random numbers

Exit status: 0 no findings, 1 findings, 2 could not run.
END
}

# perf's own make links the fuzzer, with another main().
build_fuzz()
{
	local runtime

	runtime=$(clang -print-file-name="libclang_rt.fuzzer_no_main-$(uname -m).a")
	build__load_args address
	BUILD_ARGS+=(EXTRA_PERFLIBS="-Wl,--wrap=main $FUZZ_DIR/fuzz.o $runtime -lstdc++")
	make -C "$TREE_DIR/tools/perf" -f "$SELFTESTS_DIR/fuzz/Makefile" BUILD="$BUILD_DIR" OUTPUT="$FUZZ_DIR" &&
		rm -f -- "$BUILD_DIR/perf" &&
		build__make &&
		mv -f -- "$BUILD_DIR/perf" "$FUZZ_DIR/fuzz"
}

# Set OUT_DIR, FUZZ_DIR and what build.sh reads, and build the fuzzer.
# shellcheck disable=SC2034 # build.sh reads these variables
prepare_fuzz()
{
	OUT_DIR=$REPO_DIR/out/$TAG-sanitize TREE_DIR=$REPO_DIR/out/$TAG-sanitize/linux
	BUILD_DIR=$OUT_DIR/build PERF=$OUT_DIR/perf FUZZ_DIR=$OUT_DIR/fuzz
	"$SCRIPTS_DIR/apply-and-build.sh" "${OPTIONS_PASSED[@]}" --sanitize --out "$OUT_DIR" "$TAG" ||
		die "there is no perf to fuzz" "see above; then run this again"
	mkdir -p -- "$FUZZ_DIR/corpus" "$FUZZ_DIR/findings" "$FUZZ_DIR/templates"
	take_lock "$FUZZ_DIR/lock" "$FUZZ_DIR"
	log_to "$FUZZ_DIR/build.log"
	[[ ! $FUZZ_DIR/fuzz -nt $PERF || ! $FUZZ_DIR/fuzz -nt $SELFTESTS_DIR/fuzz/fuzz.c ]] || return 0
	run_logged "build the fuzzer" build_fuzz || die_logged "the fuzzer does not build" "see the log"
}

# The fuzzer inserts its inputs into these files. Their names are the flags of the inputs.
write_templates()
{
	local options flags=0

	for options in '' --big --pipe '--big --pipe'; do
		# shellcheck disable=SC2086 # two options
		python3 "$SELFTESTS_DIR/lib/malformed.py" write good "$FUZZ_DIR/templates/$((flags++))" $options >/dev/null
	done
}

# Leaks are not reported, because perf does not free all memory before it exits.
fuzz()
{
	env PBM_FUZZ_TEMPLATES="$FUZZ_DIR/templates" \
		ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
		"$FUZZ_DIR/fuzz" -max_len=16384 -timeout=25 -rss_limit_mb=4096 \
		-artifact_prefix="$FUZZ_DIR/findings/" "$@"
}

# If the fuzzer did not read an input, that is a failure, too.
replay_corpus()
{
	local inputs

	mapfile -t inputs < <(find "$CORPUS" -type f | sort)
	((${#inputs[@]})) || die "$CORPUS is empty" "restore it from git"
	fuzz "${inputs[@]}" >"$FUZZ_DIR/log" 2>&1 || die_found
	[[ $(grep -c '^Executed ' "$FUZZ_DIR/log") = "${#inputs[@]}" ]] || die_found
	msg "read ${#inputs[@]} inputs, nothing found"
}

fuzz_for_some_time()
{
	local status=0

	touch -- "$FUZZ_DIR/started"
	log_to "$FUZZ_DIR/log"
	run_logged "fuzz for $OPT_TIME s with $JOBS processes" fuzz -fork="$JOBS" -max_total_time="$OPT_TIME" \
		"$FUZZ_DIR/corpus" "$CORPUS" || status=$?
	# This is the status of one process. Another process may have ended with a report.
	[[ $status = 0 && -z $(find "$FUZZ_DIR/findings" -newer "$FUZZ_DIR/started") ]] || die_found
	msg "nothing found: $(grep '^#' "$FUZZ_DIR/log" | tail -n 1)"
}

die_found()
{
	printf '%s: a finding; the log ends:\n' "$PROGRAM" >&2
	tail -n 40 "$FUZZ_DIR/log" | sed 's/^/  | /' >&2
	printf '%s: full log: %s, inputs: %s\n' "$PROGRAM" "$FUZZ_DIR/log" "$FUZZ_DIR/findings" >&2
	printf '%s: after the fix, add the input to %s\n' "$PROGRAM" "$CORPUS" >&2
	end_failed
}

OPT_TIME=1800 OPT_REPLAY=no
JOBS=$(nproc)

options__parse "$@" <<-'END'
	--time:		OPT_TIME
	--replay	OPT_REPLAY	yes
	--mirror:	OPT_MIRROR
	--jobs:		JOBS
	--no-install	OPT_INSTALL	no
END
pin__check_tag "$TAG"
[[ $OPT_TIME =~ ^[1-9][0-9]*$ ]] || die_usage "--time $OPT_TIME: not a number of seconds from 1 up"
arch__load ''
prepare_fuzz
write_templates
if [[ $OPT_REPLAY = yes ]]; then
	replay_corpus
else
	fuzz_for_some_time
fi
