# SPDX-License-Identifier: GPL-2.0
#
# Read the output of kselftest/runner.sh for one test program (-v program=NAME), and print a line
# for each result: "ok", "not ok" or "skip", a tab, the name, a tab, the reason.
#
# These count as failures, too: a missing result of the plan, a program without a plan, and a
# program that ends with an error although all its tests passed.

function result(kind, name, reason)
{
	printf "%s\t%s\t%s\n", kind, name, reason
}

# Return the part of a line after "# SKIP", or "" if the line has no such part.
function skip_reason(line)
{
	if (!match(line, /# SKIP/))
		return ""
	line = substr(line, RSTART + RLENGTH)
	sub(/^ */, "", line)
	return line == "" ? "no reason given" : line
}

/^# 1\.\.[0-9]+/ {
	planned = substr($2, 4) + 0
	has_plan = 1
	skip_all = skip_reason($0)
}

/^# (not )?ok [0-9]+/ {
	nr_results++
	name = $0
	sub(/^# (not )?ok [0-9]+ *(- )?/, "", name)
	reason = skip_reason(name)
	sub(/ *# .*$/, "", name)
	if ($2 == "not") {
		nr_failed++
		result("not ok", name, "")
	} else if (reason != "") {
		result("skip", name, reason)
	} else {
		result("ok", name, "")
	}
}

/^ok [0-9]+ selftests: / {
	ended = "ok"
}

/^not ok [0-9]+ selftests: / {
	ended = $0
	if (!sub(/^.* # /, "", ended))
		ended = "failed"
}

END {
	if (ended == "")
		ended = "did not end"
	how = ended == "ok" ? "" : " (" ended ")"
	if (!has_plan)
		result("not ok", program, "no plan" how)
	else if (nr_results + 0 != planned)
		result("not ok", program, nr_results + 0 " results of a plan of " planned how)
	else if (planned == 0 && skip_all != "" && ended == "ok")
		result("skip", program, skip_all)
	else if (planned == 0)
		result("not ok", program, "nothing ran" how)
	else if (ended != "ok" && !nr_failed)
		result("not ok", program, "ended with an error" how)
}
