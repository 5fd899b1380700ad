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
	submit 2 --to stable-fixes
	printed "does not say where they end"
	submit 2 --to somebody
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
	printf 'One\n\nIt is one.\n' > "$SUBMISSION/v0.1/cover-letter-stable-fixes"
	sed -i '1a # end of stable-fixes' "$PATCHES/series"
	submit 0 --to stable-fixes
	[[ $(find "$OUT/mails" -name '*.patch' | wc -l) = 2 ]] || fail "not two mails"
	holds "$OUT/mails"/0001-*.patch "+a two"
	submit 0 --to feature
	[[ $(find "$OUT/mails" -name '*.patch' | wc -l) = 2 ]] || fail "not two mails"
	holds "$OUT/mails"/0001-*.patch "+b two"
}

test_submission_numbers_patches_in_the_letter()
{
	write_good_series
	printf '[user]\n\tname = A Name\n\temail = a@name\n' > "$TMP/t/gitconfig"
	printf 'Two\n\nFirst a (<0001>).\n\nThen b (<0002>).\n\nThe end.\n' > "$SUBMISSION/v0.1/cover-letter"
	sed -i '1a # end of stable-fixes' "$PATCHES/series"
	submit 0
	holds "$OUT/mails/0000-cover-letter.patch" "First a (1)\."
	holds "$OUT/mails/0000-cover-letter.patch" "Then b (2)\."
	submit 0 --to feature
	holds "$OUT/mails/0000-cover-letter.patch" "Then b (1)\."
	holds "$OUT/mails/0000-cover-letter.patch" "The end\."
	! grep -q "First" "$OUT/mails/0000-cover-letter.patch" || fail "it names a patch that is not sent"
	printf 'Two\n\nThen c (<0003>).\n' > "$SUBMISSION/v0.1/cover-letter"
	submit 2
	printed "names <0003>, not a patch of the series"
}

test_submission_has_what_is_mailed_only()
{
	write_good_series
	printf '[user]\n\tname = A Name\n\temail = a@name\n' > "$TMP/t/gitconfig"
	printf 'Two\n\nThey are two.\n' > "$SUBMISSION/v0.1/cover-letter"
	sed -i 's,^v0.1/0002,# mailed only: &,' "$PATCHES/series"
	submit 0
	[[ $(find "$OUT/mails" -name '*.patch' | wc -l) = 3 ]] || fail "not three mails"
	holds "$OUT/mails"/0002-*.patch "+b two"
	expect 0 apply-and-build --stop-after apply v0.1
	! grep -r -q "b two" "$OUT/linux" || fail "it is applied"
	sed -i 's/^+b two/+b UGLY/' "$PATCHES/0002-b.patch"
	submit 1
	printed "  FAILED  v0.1/0002-b.patch: checkpatch: "
}

# A quilt that does nothing makes other files of the patches than git am of the mails.
test_submission_that_is_not_the_series()
{
	write_good_series
	printf '[user]\n\tname = A Name\n\temail = a@name\n' > "$TMP/t/gitconfig"
	printf 'Two\n\nThey are two.\n' > "$SUBMISSION/v0.1/cover-letter"
	mkdir "$TMP/t/bin"
	sed -i 's/^+b two/+b UGLY/' "$PATCHES/0002-b.patch"
	submit 1
	printed "refuses the series"
	printed "  FAILED  v0.1/0002-b.patch: checkpatch: "
	absent "$OUT/mails"
	sed -i 's/^+b UGLY/+b two/' "$PATCHES/0002-b.patch"
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
