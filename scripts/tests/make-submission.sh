#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests of make-submission.sh.

. "$(dirname "$0")/fixtures.sh"

call_make_submission()
{
	cd "$TMP/t" && GIT_CONFIG_GLOBAL=$TMP/t/gitconfig call_script make-submission.sh "$@"
}

# submit STATUS OPTION...
submit()
{
	expect_status "$1" call_make_submission "${@:2}" v0.1
}

# Write a git configuration with a name, and with a gpg that fails: git must not call gpg.
write_submitter()
{
	printf '%s\n' '[user]' 'name = A Name' 'email = a@name' '[commit]' 'gpgsign = true' '[gpg]' 'program = false' \
		> "$TMP/t/gitconfig"
}

# write_letter PART LINE...
write_letter()
{
	printf '%s\n' A\ letter '' "${@:2}" > "$SUBMISSION/v0.1/$1"
}

test_submission_needs_a_name_and_a_letter()
{
	submit 2 --part core
	printed "git config has no user.name or no user.email"
	write_submitter
	write_letter fixes "It is one."
	submit 2
	printed "--part '': not a part with a letter"
	submit 2 --part core
	printed "use one of: fixes"
	submit 2 --part fixes --version 2
	printed "add 'Changes in v2:'"
	absent "$OUT/mails"
}

test_submission_of_a_part()
{
	write_submitter
	write_letter fixes "It is one."
	# The line that the patch now changes comes from the part fixes.
	sed -i 's/b\.c/a.c/g; s/^ b / a /; s/^-b 2/-a two/; s/^+b two/+a zwei/' "$PATCHES/core/b.patch"
	write_letter core "It is new: <x> of <key>." "" "Changes in v2:" "- none" "" "Applies on top of: fixes"
	submit 0 --part fixes
	submit 0 --part core --version 2 --rfc
	[[ $(find "$OUT/mails" -name '*.patch' | wc -l) = 2 ]] || fail "not 2 mails"
	holds "$OUT/mails/v2-0000-cover-letter.patch" "Subject: \\[RFC PATCH v2 0/1\\] A letter"
	holds "$OUT/mails/v2-0000-cover-letter.patch" "It is new: <x> of <key>."
	holds "$OUT"/mails/v2-0001-*.patch "From: A Name <a@name>"
	holds "$OUT"/mails/v2-0001-*.patch "Signed-off-by: A Name <a@name>"
	holds "$OUT"/mails/v2-0001-*.patch "+a zwei"
	! grep -r "A Man" "$OUT/mails" || fail "the mails have the author of the repository"
	holds "$OUT/recipients" "--to=A Maintainer <a@maintainer>"
	holds "$OUT/recipients" "--cc=list@kernel"
	printed "git send-email --dry-run $OUT/mails/"
}

test_submission_numbers_patches_in_the_letter()
{
	write_submitter
	write_patch core/add-c.patch c.c 2 'c two'
	write_letter core "Of <key>," "then c (<add-c>)."
	submit 0 --part core
	holds "$OUT/mails/0000-cover-letter.patch" "then c (2)\."
	cp "$SUBMISSION/v0.1/core" "$SUBMISSION/v0.1/fixes"
	submit 2 --part fixes
	printed "names <add-c>, which is not mailed with it"
}

test_submission_that_is_refused()
{
	write_submitter
	write_letter core "It is new."
	sed -i 's/^+b two/+b UGLY/' "$PATCHES/core/b.patch"
	submit 1 --part core
	printed "  FAILED  core/b.patch: checkpatch: "
	absent "$OUT/mails"
	rm -r "$OUT" "$CACHE"
	submit 2 --part core
	printed "the series could not be checked"
}

run_tests
