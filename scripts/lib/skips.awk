# SPDX-License-Identifier: GPL-2.0
#
# awk -f skips.awk LIST [RESULTS]: compare the skipped tests of run-selftests.sh with
# the list of expected skips. A line of LIST is NAME<TAB>REASON: two regular expressions
# that must match the whole text. "#" begins a comment line.
#
# Print RESULTS, with "unexpected" instead of "skip" for a skip that LIST does not have. Then print
# "missed<TAB>NAME<TAB>REASON" for each line of LIST that matches no skip. With -v filter=ERE, not
# all tests ran, so print "missed" only for tests that ran.
#
# Exit status 2: LIST cannot be read.

BEGIN {
	FS = "\t"
}

FILENAME == ARGV[1] {
	if (/^#/ || /^[ \t]*$/)
		next
	if (NF != 2 || $1 == "" || $2 == "") {
		printf "%s:%d: not NAME<TAB>REASON: %s\n", FILENAME, FNR, $0 >"/dev/stderr"
		failed = 1
		exit 2
	}
	nr++
	name[nr] = $1
	reason[nr] = $2
	# awk exits with 2 if NAME or REASON is not a regular expression.
	tried = ("" ~ whole($1)) + ("" ~ whole($2))
	next
}

function whole(text)
{
	return "^(" text ")$"
}

{
	for (i = 1; i <= nr; i++) {
		if ($2 !~ whole(name[i]))
			continue
		ran[i] = 1
		if ($1 == "skip" && $3 ~ whole(reason[i])) {
			used[i] = 1
			print
			next
		}
	}
	if ($1 == "skip")
		sub(/^skip/, "unexpected")
	print
}

END {
	if (failed || ARGC < 3)
		exit failed ? 2 : 0
	for (i = 1; i <= nr; i++)
		if (!used[i] && (ran[i] || filter == ""))
			printf "missed\t%s\t%s\n", name[i], reason[i]
}
