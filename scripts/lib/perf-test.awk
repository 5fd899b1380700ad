# SPDX-License-Identifier: GPL-2.0
#
# Read the output of "perf test", and print NAME<TAB>RESULT<TAB>SUITE of each test. The name
# of a subtest is "NAME OF THE SUITE: NAME". Text in parentheses at the end is removed, because
# a patch may have changed it. RESULT is Ok, Skip or FAILED!. SUITE is a number.

!/^ *[0-9]+(\.[0-9]+)?: / {
	next
}

{
	split($1, number, /[.:]/)
	name = $0
	sub(/^ *[0-9.]+: /, "", name)
	result = ""
	if (match(name, /: (Ok|Skip|FAILED!)[^:]*$/)) {
		result = substr(name, RSTART + 2)
		sub(/ .*/, "", result)
		name = substr(name, 1, RSTART - 1)
	}
	sub(/ *(: *|: Running.*)?$/, "", name)
}

result == "" {
	suite[number[1]] = name
	next
}

{
	if (number[2] != "")
		name = suite[number[1]] ": " name
	sub(/ *\([^()]*\)[.]?$/, "", name)
	if (seen[name]++)
		name = name " (" seen[name] ")"
	print name "\t" result "\t" number[1]
}
