# SPDX-License-Identifier: GPL-2.0
#
# Read the output of "perf test", and print a line for each result, as ktap.awk does. A skipped
# test has status 2 in perf and status 4 in kselftest. This file does not use the status. It
# reads the word "Skip".

{
	gsub(/\033\[[0-9;]*[A-Za-z]/, "")
	gsub(/\r/, "")
}

# perf's shell tests print the reason in this form.
/\[Skipped .*\]/ {
	why = $0
	sub(/^.*\[Skipped */, "", why)
	sub(/\].*$/, "", why)
}

/^ *[0-9]+(\.[0-9]+)?: .*: *(Ok|FAILED!|Skip.*)$/ {
	name = verdict = $0
	sub(/^ *[0-9.]+: */, "", name)
	sub(/ *: *(Ok|FAILED!|Skip( \(.*\))?) *$/, "", name)
	sub(/^.*: */, "", verdict)
	nr_results++
	if (verdict ~ /^Ok/)
		kind = "ok"
	else if (verdict ~ /^Skip/)
		kind = "skip"
	else
		kind = "not ok"
	reason = ""
	if (kind == "skip") {
		reason = why == "" ? "no reason given" : why
		if (match($0, /Skip \(.*\)/))
			reason = substr($0, RSTART + 6, RLENGTH - 7)
	}
	why = ""
	printf "%s\tperf test: %s\t%s\n", kind, name, reason
}

END {
	if (!nr_results)
		printf "not ok\tperf test: bpf-metadata\tno such test ran\n"
}
