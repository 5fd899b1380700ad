#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests of mutate.py.

. "$(dirname "$0")/lib.sh"

mutate()
{
	PRINTED=$("$SCRIPTS_DIR/mutate.py" --tree "$TMP/t/new" --base "$TMP/t/old" --table "$TMP/t/table" "$@" 2>&1)
}

# A function that was there, and one that the series adds
make_mutable()
{
	mkdir -p "$TMP/t/old/tools/perf/util" "$TMP/t/new/tools/perf/util"
	cat > "$TMP/t/old/tools/perf/util/x.c" <<-'END'
	int old(int a)
	{
		return a < 1;
	}
	END
	{
		cat "$TMP/t/old/tools/perf/util/x.c"
		cat <<-'END'

		static int new(int a,
			       int b)
		{
			int err = 0;

			if (a < b)
				return -EINVAL;
			err = add(a,
				  b);
			call(err);
			free(err);
			return min(a, err);
		}
		END
	} > "$TMP/t/new/tools/perf/util/x.c"
}

# Each line but the one that frees, and those of half a statement, is in the table once.
test_mutations_are_drawn()
{
	local before

	make_mutable
	mutate --draw v6.16
	printed "4 mutations in $TMP/t/table"
	cp "$TMP/t/table" "$TMP/t/first"
	mutate --draw v6.16
	cmp "$TMP/t/first" "$TMP/t/table" || fail "another table by the same seed"
	mutate --list v6.16
	[[ $(cut -f 2-4 <<< "$PRINTED" | sort -u) = tools/perf/util/x.c$'\t'new$'\t'1 ]] || fail "not all are of new(): $PRINTED"
	for before in 'if (a < b)' 'return -EINVAL;' 'call(err);' 'return min(a, err);'; do
		printed $'\t'"$before"$'\t'
	done
	printed $'\tno-error\treturn -EINVAL;\treturn 0;'
	printed $'\tdrop-call\tcall(err);\t;'
	printed $'\tmin-max\treturn min(a, err);\treturn max(a, err);'
	mutate --draw --count 2 v6.16
	printed "2 mutations in "
}

# refuses_mutations TEXT ARGUMENT...
refuses_mutations()
{
	local status=0

	mutate "${@:2}" || status=$?
	((status == 2)) || fail "mutate.py ${*:2}: status $status"
	printed "$1"
	printed "next: "
}

test_mutations_that_make_no_sense()
{
	"$SCRIPTS_DIR/mutate.py" --help > "$TMP/t/help"
	holds "$TMP/t/help" "^usage: scripts/mutate.py"
	refuses_mutations "--frobnicate" --frobnicate v6.16
	refuses_mutations "unknown tag 'v9.9'" v9.9
	refuses_mutations "one TAG is needed, 2 given" v6.16 v6.16
	refuses_mutations "--seed x: not a number" --draw --seed x v6.16
	refuses_mutations "no patched tree" --draw v6.16
	refuses_mutations "$TMP/t/table: no table" v6.16
	echo "a line" > "$TMP/t/table"
	refuses_mutations "$TMP/t/table:1: no mutation: a line" v6.16
	make_mutable
	cp "$TMP/t/old/tools/perf/util/x.c" "$TMP/t/new/tools/perf/util/x.c"
	refuses_mutations "the series adds nothing" --draw v6.16
	make_mutable
	mutate --draw v6.16
	refuses_mutations "no such mutation" --only nobody v6.16
	((EUID == 0)) || refuses_mutations "only root" v6.16
}

run_tests
