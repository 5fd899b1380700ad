# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# What every test needs. A test file sources this file, and those beside it that it needs: recording.sh,
# attach.sh, top.sh, terminal.sh, nobody.sh, report-lib.sh. It ends with: run_tests
#
# core.sh explains what a test is, and how it ends. If the tests of a file neither load BPF
# programs nor count the programs of the machine, the file sets BESIDE=yes. run-selftests.sh runs
# such files at the same time as other files.
#
# Environment:
#	OUTPUT			the directory in which the Makefile has built everything
#	PBM_PERF		the perf under test
#	PBM_UNPATCHED_PERF	perf of the same version without the series (optional)
#	PBM_PEER_PERF		perf of v6.17 or later, which writes metadata records (optional)
#	PBM_OLD_PERF		perf of v6.14 or earlier, which refuses metadata records (optional)
#	PBM_BPFTOOL		bpftool, to compare with (default: bpftool)
#	PBM_BPF_STAMP		the built tools/bpf-stamp (optional)
#	PBM_ALL			0: leave out tests that only --all runs (default: 1)
#	PBM_FILTER, PBM_LIST	see core.sh
#	PBM_TIMEOUT_SCALE	how many times slower than usual this machine is (default: 1).
#				It multiplies time limits, and divides the workload
#	PBM_SANITIZED		1: the perf under test has sanitizers
#	PBM_EMULATED		1: the processor is emulated
#	PBM_KEEP		a directory for recordings that another machine reads
#				(optional)
#
# Sets:
#	SELFTESTS		the directory selftests/

SELFTESTS=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
# shellcheck source=selftests/lib/core.sh
. "$SELFTESTS/lib/core.sh"
# shellcheck disable=SC2034 # core.sh reads it
KTAP_HELPERS=${OUTPUT-OUTPUT is not set}/ktap_helpers.sh
export PAGER=cat
BPFTOOL=${PBM_BPFTOOL:-bpftool}
SCALE=${PBM_TIMEOUT_SCALE:-1}
# Seconds that await() waits
DEADLINE=$((30 * SCALE * (1 + 3 * ${PBM_SANITIZED:-0})))
NATIVE_ONLY=
# Commands for the end of a test, before the holder ends
ON_END=()
BESIDE=no
# Else perf writes to a file only every 4096 bytes. AddressSanitizer must be the first library.
LINE_BUFFERED=(stdbuf -oL)
# shellcheck disable=SC2034 # for top.sh and the tests
[[ ${PBM_SANITIZED:-0} = 0 ]] || LINE_BUFFERED=()
# If SCALE is 1, the workload takes less than 0.1 s and gives hundreds of samples.
WORKLOAD=(sh -c "i=0; while [ \$i -lt $((30000 / SCALE)) ]; do i=\$((i + 1)); done")
FREQUENCY=()
((SCALE == 1)) || FREQUENCY=(-F $((4000 / SCALE)))

# With -S, python3 starts faster, because it does not look for packages.
values()	{ python3 -S "$SELFTESTS/lib/values.py" "$@"; }
perfdata()	{ python3 -S "$SELFTESTS/lib/perfdata.py" "$@"; }
malformed()	{ python3 -S "$SELFTESTS/lib/malformed.py" "$@"; }

# write_file FILE [--big] [--pipe]: write a perf.data. Standard input is Python code that changes "file",
# see perfgen.py.
write_file()
{
	{
		echo 'import sys, perfgen'
		echo 'file = perfgen.File("--big" in sys.argv, "--pipe" in sys.argv)'
		cat
		echo 'file.write(sys.argv[1])'
	} >"$TMP/change.py"
	PYTHONPATH=$SELFTESTS/lib python3 "$TMP/change.py" "$@"
}

# Remove the random tip at the end of file $1, which has the output of perf report.
drop_tips()
{
	sed -i '/^# (\(Tip:\|Cannot load tips\)/d' "$1"
}

# native_only TEXT: skip on an emulated machine, where the test is slow and shows nothing new; TEXT is
# the reason. NATIVE_ONLY=TEXT before run_tests does the same for all tests of the file
native_only()
{
	[[ ${PBM_EMULATED:-0} != 1 ]] || skip "not in an emulated machine: $1"
}

# own_mounts [COMMAND]: before the tests of a file: run the file in a mount namespace with a BPF file
# system, after the shell command COMMAND
own_mounts()
{
	[[ -z ${PBM_LIST:-}${PBM_OWN_MOUNTS:-} ]] && unshare --mount true 2>/dev/null || return 0
	# shellcheck disable=SC2016 # for the inner shell
	PBM_OWN_MOUNTS=1 exec unshare --mount sh -e -c "${1:-:}"'
		mountpoint -q /sys/fs/bpf || mount -t bpf bpf /sys/fs/bpf || :
		exec bash "$0"' "$0"
}

# few_symbols: before the tests of a file: let perf see only 1/64 of the kernel's symbols, because
# reading all symbols is slow. Keep _text and similar symbols, which perf needs, and bpf_test_run, which
# some tests look for in callchains.
few_symbols()
{
	# shellcheck disable=SC2016 # for the inner shell
	own_mounts 'symbols=$(mktemp)
		awk "NR % 64 == 1 || /[ _](text|stext|etext|edata|end|bpf_test_run)\$/" /proc/kallsyms >"$symbols"
		chmod 444 "$symbols"
		mount --bind "$symbols" /proc/kallsyms
		rm "$symbols"'
}

# all_symbols: undo few_symbols, for the rest of the file
all_symbols()
{
	! mountpoint -q /proc/kallsyms || umount /proc/kallsyms
}

# all_only: skip if PBM_ALL is 0, see below
all_only()
{
	[[ ${PBM_ALL:-1} != 0 ]] || skip "only with --all"
}

# own NAME: print the name that "hold -o" gives to program NAME
own()
{
	printf '%s%03x\n' "${1%???}" $(($$ % 4096))
}

# hold [-n TIMES|-o] NAME...: hold the programs of these objects until the test ends, or until release. With
# -o, they get names that no other file of tests uses: copies of the objects have what own prints. The program
# in busy_v1 is named busy. The new name has the same length, so the object stays valid.
hold()
{
	local args=() dir='' name prog

	if [[ $1 = -n ]]; then
		args=(-n "$2")
		shift 2
	elif [[ $1 = -o ]]; then
		shift
		dir=$TMP/
		for name; do
			prog=${name%_v[0-9]}
			LC_ALL=C sed "s/$prog/$(own "$prog")/g" "$OUTPUT/$name.bpf.o" >"$TMP/$name.bpf.o"
		done
	fi
	set -- "${@/#/$dir}"
	hold_command "$OUTPUT/hold" "${args[@]}" "${@/%/.bpf.o}"
}

# hold_handmade MODE: the same as hold, for programs of handmade_btf.c
hold_handmade()
{
	hold_command "$OUTPUT/handmade_btf" "$1"
}

# A test can have only one holder (hold, start_churn or start_attach) at a time. The holder ends
# when its input ends, so it does not outlive this shell. Sets HELD_IDS and HELD_NAMES.
hold_command()
{
	local id name

	HELD_IDS=()
	HELD_NAMES=()
	[[ $BESIDE = no ]] || fail "a file with BESIDE=yes must not load programs"
	coproc HOLDER { cd "$OUTPUT" && exec "$@"; }
	while read -r -t $((60 * SCALE)) -u "${HOLDER[0]}" id name; do
		[[ $id != ready ]] || return 0
		HELD_IDS+=("$id")
		HELD_NAMES+=("$name")
	done
	fail "$* did not get ready"
}

# spend [INDEX TIMES]...: let record() run program HELD_IDS[INDEX], TIMES times
spend()
{
	local args=()

	while (($#)); do
		args+=("${HELD_IDS[$1]}" "$2")
		shift 2
	done
	head -c 64 /dev/zero >"$TMP/packet"
	# shellcheck disable=SC2016 # for the inner shell
	WORKLOAD=(sh -c 'run="$1 prog run" packet=$2; shift 2
		while [ $# -gt 0 ]; do
			$run id $1 data_in "$packet" repeat $2 || exit
			shift 2
		done >/dev/null' sh "$BPFTOOL" "$TMP/packet" "${args[@]}")
}

# End the holder and wait for its end, because the next test must not see its programs.
release()
{
	local pid=${HOLDER_PID:-} input=${HOLDER[1]:-}

	[[ -n $pid ]] || return 0
	[[ -z $input ]] || exec {input}>&-
	wait "$pid" || :
}

# record FILE OPTION...: perf record of all CPUs and a short workload. nice gives perf, but not the
# workload, priority, so that perf loses no events on a busy machine.
record()
{
	local file=$1

	shift
	nice -n -15 "$PBM_PERF" record -N -q -a -e cpu-clock "${FREQUENCY[@]}" "$@" -o "$file" -- \
		nice -n 15 "${WORKLOAD[@]}"
}

# show FILE: write the output of perf script --show-bpf-events to FILE.script
show()
{
	"$PBM_PERF" script --show-bpf-events -i "$1" >"$1.script"
}

# await WHAT COMMAND...: wait until the command succeeds
await()
{
	local what=$1 end=$((SECONDS + DEADLINE))

	shift
	until "$@"; do
		((SECONDS < end)) || fail "waited in vain: $what"
		sleep 0.02
	done
}

# Shorten the names of temporary copies of the vdso in the output of perf report -D.
without_vdso_names()
{
	sed 's/perf-vdso\.so-[A-Za-z0-9]*/perf-vdso.so/'
}

# Print the name that perf gives to the function of program HELD_IDS[$1] if it has only one.
symbol_of()
{
	"$BPFTOOL" prog show id "${HELD_IDS[$1]}" |
		sed -n "s/.*[[:space:]]tag \([0-9a-f]*\).*/bpf_prog_\1_${HELD_NAMES[$1]}/p" | grep .
}

# want_no_records FILE: fail unless FILE has samples and no metadata record. Also look for a sample,
# because an empty or unreadable file has no metadata records, either.
want_no_records()
{
	perfdata types "$1" >"$TMP/types"
	grep -q -x 9 "$TMP/types" || fail "no sample in $1"
	if grep -x 84 "$TMP/types"; then
		fail "$1 has metadata records"
	fi
}

# has_ksymbol FILE SYMBOL: fail unless FILE has a KSYMBOL of this function
has_ksymbol()
{
	perfdata ksymbols "$1" >"$TMP/ksymbols"
	grep -q -x -F -e "$2" "$TMP/ksymbols" || fail "no KSYMBOL $2 in $1"
}

# shows_no_record SYMBOL: fail unless $TMP/data.script, written by show, has a KSYMBOL of this function
# and no metadata record with its name
shows_no_record()
{
	grep -a -q -E -e "PERF_RECORD_KSYMBOL .* name $1\$" "$TMP/data.script" ||
		fail "perf script shows no KSYMBOL $1"
	if grep -a -E -e "PERF_RECORD_BPF_METADATA prog $1\$" "$TMP/data.script"; then
		fail "$1 has a metadata record but no metadata"
	fi
}

# is_traced ID: succeed if strace is attached to this process or thread
is_traced()
{
	! grep -q '^TracerPid:.*\<0$' "/proc/$1/status"
}

# LeakSanitizer does not work under strace, because both need ptrace.
trace()
{
	ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0 strace "$@"
}

# other_perf VARIABLE: skip if the variable is not set, fail if the perf that it names can't run
other_perf()
{
	[[ -n ${!1:-} ]] || skip "$1 is not set"
	[[ -x ${!1} ]] || fail "$1=${!1} cannot be run"
}

# run-selftests.sh builds peer and old perf only with --all.
unpatched_perf()	{ other_perf PBM_UNPATCHED_PERF; }
peer_perf()		{ [[ -n ${PBM_PEER_PERF:-} ]] || all_only; other_perf PBM_PEER_PERF; }
old_perf()		{ [[ -n ${PBM_OLD_PERF:-} ]] || all_only; other_perf PBM_OLD_PERF; }

prepare_tests()
{
	local program

	if ((EUID)); then
		ktap_skip_all "only root can load programs and record them"
		exit "$KSFT_SKIP"
	fi
	for program in "$OUTPUT/hold" "${PBM_PERF:-PBM_PERF}" "$BPFTOOL" python3; do
		command -v "$program" >/dev/null || ktap_exit_fail_msg "$program is not a program"
	done
	# perf must not read the user's configuration, nor copy anything into ~/.debug.
	export PERF_CONFIG=$TMP/perfconfig
	printf '[buildid]\n\tdir = %s\n' "$TMP/debug" >"$PERF_CONFIG"
}

start_test()
{
	rm -f "$TMP/list"
	[[ -z $NATIVE_ONLY ]] || native_only "$NATIVE_ONLY"
}

# A process in the background must not outlive its test: it would disturb the others.
end_test()
{
	local command job children

	for command in "${ON_END[@]}" release; do
		"$command"
	done
	for job in $(jobs -pr); do
		children=$(pgrep -P "$job" || :)
		# shellcheck disable=SC2086 # a list
		kill "$job" $children || :
		wait "$job" || :
	done
}
