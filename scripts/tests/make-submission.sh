#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests of make-submission.sh.

. "$(dirname "$0")/fixtures.sh"

# The mails are from whom $TMP/t/gitconfig names.
call_make_submission()
{
	cd "$TMP/t" && unset GIT_DIR && GIT_CONFIG_GLOBAL=$TMP/t/gitconfig call_script make-submission "$@"
}

# submit STATUS OPTION...
submit()
{
	expect_status "$1" call_make_submission "${@:2}" v0.1
}

test_submission_needs_a_name_and_a_letter()
{
	write_good_series
	submit 2
	printed "git config has no user.name or no user.email"
	printf '[user]\n\tname = A Name\n\temail = a@name\n' > "$TMP/t/gitconfig"
	submit 2
	printed "cover-letter is not there"
	printf 'Two\n\nThey are two.\n' > "$SUBMISSION/v0.1/cover-letter"
	submit 2 --version 2
	printed "add 'Changes in v2:'"
	submit 2 --part feature
	printed "use one of: fixes core"
	submit 2 --part core
	printed "/v0.1/core is not there"
	absent "$OUT/mails"
}

test_submission_applies()
{
	local mail

	write_good_series
	printf '[user]\n\tname = A Name\n\temail = a@name\n' > "$TMP/t/gitconfig"
	printf 'Two\n\nThey are two.\n\nChanges in v2:\n- none\n' > "$SUBMISSION/v0.1/cover-letter"
	# The rest of the user's configuration has no effect.
	printf '[commit]\n\tgpgsign = true\n[gpg]\n\tprogram = false\n' >> "$TMP/t/gitconfig"
	submit 0 --version 2 --rfc
	[[ $(find "$OUT/mails" -name '*.patch' | wc -l) = 3 ]] || fail "not three mails"
	holds "$OUT/mails/v2-0000-cover-letter.patch" "Subject: \\[RFC PATCH v2 0/2\\] Two"
	holds "$OUT/mails/v2-0000-cover-letter.patch" "They are two."
	holds "$OUT/mails/v2-0000-cover-letter.patch" "base-commit: "
	for mail in "$OUT"/mails/v2-000[12]*.patch; do
		holds "$mail" "From: A Name <a@name>"
		holds "$mail" "Signed-off-by: A Name <a@name>"
	done
	holds "$OUT/recipients" "--to=A Maintainer <a@maintainer>"
	holds "$OUT/recipients" "--cc=list@kernel"
	printed "git send-email --dry-run $OUT/mails/"
}

test_submission_of_a_part()
{
	write_good_series
	printf '[user]\n\tname = A Name\n\temail = a@name\n' > "$TMP/t/gitconfig"
	printf 'Fix\n\nIt is one.\n' > "$SUBMISSION/v0.1/fixes"
	printf 'New\n\nIt is new.\n\nApplies on top of: fixes\n' > "$SUBMISSION/v0.1/core"
	submit 2
	printed "v0.1 is mailed part by part"
	printed "add --part with one of: fixes core"
	submit 0 --part fixes
	[[ $(find "$OUT/mails" -name '*.patch' | wc -l) = 2 ]] || fail "not two mails"
	holds "$OUT/mails/0000-cover-letter.patch" "It is one."
	holds "$OUT/mails/0000-cover-letter.patch" "base-commit: "
	holds "$OUT/mails"/0001-*.patch "+a two"
	# A line that the part before has made
	sed -i 's/b\.c/a.c/; s/^ b / a /; s/^-b 2/-a two/; s/^+b two/+a zwei/' "$PATCHES/core/b.patch"
	printf 'Core\n\nIt is new.\n\nApplies on top of: core\n' > "$SUBMISSION/v0.1/core"
	submit 2 --part core
	printed "'Applies on top of: core' is no other part of the series"
	sed -i 's/: core/: fixes/' "$SUBMISSION/v0.1/core"
	sed -i 's/^# part core/# part other/; s,^core/,other/,' "$SERIES"
	mv "$PATCHES/core" "$PATCHES/other"
	mv "$SUBMISSION/v0.1/core" "$SUBMISSION/v0.1/other"
	submit 0 --part other
	[[ $(find "$OUT/mails" -name '*.patch' | wc -l) = 2 ]] || fail "not two mails"
	holds "$OUT/mails/0000-cover-letter.patch" "Applies on top of: fixes"
	! grep -q "base-commit: " "$OUT/mails/0000-cover-letter.patch" || fail "the base is no commit that others have"
	holds "$OUT/mails"/0001-*.patch "+a zwei"
}

test_submission_numbers_patches_in_the_letter()
{
	write_good_series
	change core/add-c.patch c.c 2 'c two'
	printf '[user]\n\tname = A Name\n\temail = a@name\n' > "$TMP/t/gitconfig"
	printf 'Two\n\nOf <key>,\nthen c (<add-c>).\n' | tee "$SUBMISSION/v0.1/cover-letter" > "$SUBMISSION/v0.1/core"
	submit 0
	holds "$OUT/mails/0000-cover-letter.patch" "Of <key>,"
	holds "$OUT/mails/0000-cover-letter.patch" "then c (3)\."
	submit 0 --part core
	holds "$OUT/mails/0000-cover-letter.patch" "then c (2)\."
	cp "$SUBMISSION/v0.1/core" "$SUBMISSION/v0.1/fixes"
	submit 2 --part fixes
	printed "names <add-c>, no patch that is mailed with it"
}

# A quilt that does nothing makes other files of the patches than git am of the mails.
test_submission_that_is_not_the_series()
{
	write_good_series
	printf '[user]\n\tname = A Name\n\temail = a@name\n' > "$TMP/t/gitconfig"
	printf 'Two\n\nThey are two.\n' > "$SUBMISSION/v0.1/cover-letter"
	mkdir "$TMP/t/bin"
	sed -i 's/^+b two/+b UGLY/' "$PATCHES/core/b.patch"
	submit 1
	printed "refuses the series"
	printed "  FAILED  core/b.patch: checkpatch: "
	absent "$OUT/mails"
	sed -i 's/^+b UGLY/+b two/' "$PATCHES/core/b.patch"
	printf '#!/bin/sh\n' > "$TMP/t/bin/b4"
	chmod +x "$TMP/t/bin/b4"
	submit 1
	printed "b4 does not take the mails"
	absent "$OUT/mails"
	mv "$TMP/t/bin/b4" "$TMP/t/bin/quilt"
	submit 1
	printed "git am makes other files of the mails"
	absent "$OUT/mails"
}

run_tests
