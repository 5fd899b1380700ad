# SPDX-License-Identifier: GPL-2.0
#
# Read what "perf test" prints and print a line for each result, as ktap.awk
# does. perf's tests skip with status 2 and kselftest's with 4; this is the only
# place where the two meet, and it reads neither but the word "Skip".

{
	gsub(/\033\[[0-9;]*[A-Za-z]/, "")
	gsub(/\r/, "")
}

# How perf's shell tests say why
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
