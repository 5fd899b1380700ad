#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests of make-submission.sh.

. "$(dirname "$0")/fixtures.sh"

# The mails come from the person in $TMP/t/gitconfig.
call_make_submission()
{
	cd "$TMP/t" && unset GIT_DIR && GIT_CONFIG_GLOBAL=$TMP/t/gitconfig call_script make-submission "$@"
}

# submit STATUS OPTION...: fail unless make-submission.sh ends with this status
submit()
{
	expect_status "$1" call_make_submission "${@:2}" v0.1
}

# Write a git configuration with a name, and with a gpg that fails: git must not call gpg.
write_submitter()
{
	write_good_series
	printf '[user]\n\tname = A Name\n\temail = a@name\n' > "$TMP/t/gitconfig"
	printf '[commit]\n\tgpgsign = true\n[gpg]\n\tprogram = false\n' >> "$TMP/t/gitconfig"
}

# write_letter NAME LINE...: write a cover letter
write_letter()
{
	printf '%s\n' A\ letter '' "${@:2}" > "$SUBMISSION/v0.1/$1"
}

# mails_are NUMBER: fail unless there are this many mails
mails_are()
{
	[[ $(find "$OUT/mails" -name '*.patch' | wc -l) = "$1" ]] || fail "not $1 mails"
}

test_submission_needs_a_name_and_a_letter()
{
	write_good_series
	submit 2
	printed "git config has no user.name or no user.email"
	write_submitter
	submit 2
	printed "cover-letter is not there"
	write_letter cover-letter
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

	write_submitter
	write_letter cover-letter "They are two." "" "Changes in v2:" "- none"
	submit 0 --version 2 --rfc
	mails_are 3
	holds "$OUT/mails/v2-0000-cover-letter.patch" "Subject: \\[RFC PATCH v2 0/2\\] A letter"
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
	write_submitter
	write_letter fixes "It is one."
	write_letter core "It is new." "" "Applies on top of: core"
	submit 2
	printed "v0.1 is mailed part by part"
	printed "add --part with one of: fixes core"
	submit 0 --part fixes
	mails_are 2
	holds "$OUT/mails/0000-cover-letter.patch" "It is one."
	holds "$OUT/mails/0000-cover-letter.patch" "base-commit: "
	holds "$OUT/mails"/0001-*.patch "+a two"
	# The line that the patch now changes comes from the part fixes.
	sed -i 's/b\.c/a.c/; s/^ b / a /; s/^-b 2/-a two/; s/^+b two/+a zwei/' "$PATCHES/core/b.patch"
	submit 2 --part core
	printed "'Applies on top of: core' is not another part of the series"
	sed -i 's/: core/: fixes/' "$SUBMISSION/v0.1/core"
	submit 0 --part core
	mails_are 2
	holds "$OUT/mails"/0001-*.patch "+a zwei"
	! grep base-commit "$OUT/mails/0000-cover-letter.patch" || fail "a wrong base-commit"
}

test_submission_numbers_patches_in_the_letter()
{
	write_submitter
	change core/add-c.patch c.c 2 'c two'
	write_letter cover-letter "Of <key>," "then c (<add-c>)."
	submit 0
	holds "$OUT/mails/0000-cover-letter.patch" "Of <key>,"
	holds "$OUT/mails/0000-cover-letter.patch" "then c (3)\."
	cp "$SUBMISSION/v0.1/cover-letter" "$SUBMISSION/v0.1/core"
	submit 0 --part core
	holds "$OUT/mails/0000-cover-letter.patch" "then c (2)\."
	cp "$SUBMISSION/v0.1/core" "$SUBMISSION/v0.1/fixes"
	submit 2 --part fixes
	printed "names <add-c>, which is not mailed with it"
}

test_submission_that_is_refused()
{
	write_submitter
	write_letter cover-letter "They are two."
	sed -i 's/^+b two/+b UGLY/' "$PATCHES/core/b.patch"
	submit 1
	printed "refuses the series"
	printed "  FAILED  core/b.patch: checkpatch: "
	absent "$OUT/mails"
}

run_tests
