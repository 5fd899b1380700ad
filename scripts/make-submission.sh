#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Turn a part of a series into mails for the kernel's mailing lists, and print the commands that
# send them. The script itself sends nothing.

set -euo pipefail

SCRIPTS_DIR=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd -P)
. "$SCRIPTS_DIR/lib/options.sh"
. "$SCRIPTS_DIR/lib/pin.sh"
. "$SCRIPTS_DIR/lib/series.sh"

print_usage()
{
	cat <<END
usage: scripts/make-submission.sh [options] --part PART TAG

Makes a mail of each patch of a part of patches/TAG/series, which has to pass check-series.sh
--fast. You are the sender and sign off each patch, with the name and address of git config
user.name and user.email. The first mail is the letter submission/TAG/PART. Its last paragraph
names the parts that must be applied first: "Applies on top of: PART, PART". It names
NAME.patch as <NAME>, and the script replaces this by the number of the mail.
TAG is one of: $(pin__list_patched | paste -s -d ' ')

  --part PART       the part, which must have a letter
  --version N       version of the series (default: 1). From version 2 on, the
                    letter must list the changes under "Changes in vN:"
  --rfc             mail the patches as a request for comments
  --out DIR         directory for mails/ and recipients (default:
                    out/TAG-PART-submission)
  -h, --help        this text

The last lines are the commands that send the mails; the first has the option --dry-run.
Exit status: 0 done, 1 the series is refused, 2 could not run.
Environment: as for check-series.sh
END
}

check_options()
{
	[[ $OPT_VERSION =~ ^[1-9][0-9]*$ ]] || die_usage "--version $OPT_VERSION: not a number from 1 up"
	pin__load "$TAG"
	series__load "$TAG"
	LETTERS_DIR=${PBM_SUBMISSION:-$REPO_DIR/submission}/$TAG
	COVER=$LETTERS_DIR/$OPT_PART
}

load_submitter()
{
	NAME=$(git config user.name) || NAME=
	EMAIL=$(git config user.email) || EMAIL=
	[[ -n $NAME && $EMAIL = *@* ]] ||
		die "git config has no user.name or no user.email" \
			"git config user.name 'A Name' && git config user.email a.name@example.org"
}

# Set CHOSEN, the patches to mail, and BELOW, the patches that the reader's tree already has.
choose_patches()
{
	local below

	mapfile -t CHOSEN < <(series__entries_of "$OPT_PART")
	[[ ${#CHOSEN[@]} != 0 && -f $COVER ]] ||
		die "--part '$OPT_PART': not a part with a letter" "use one of: $(ls -x -w 0 "$LETTERS_DIR" 2>/dev/null)"
	mapfile -t below < <(series__on_top_of "$COVER")
	mapfile -t BELOW < <(series__entries_of "${below[@]}")
}

# Set LETTER to the letter with the numbers of the mails. Only names of patches have a '-' and no '@' in <>,
# unlike <key> and <a@b>.
number_patches()
{
	local i name script='' unknown

	for i in "${!CHOSEN[@]}"; do
		name=${CHOSEN[i]##*/}
		script+="s/<${name%.patch}>/$((i + 1))/g;"
	done
	LETTER=$(sed "$script" "$COVER")
	unknown=$(grep -o '<[^<> @]*-[^<> @]*>' <<<"$LETTER" | paste -s -d ' ') || return 0
	die "$COVER names $unknown, which is not mailed with it" \
		"correct it; instead of a patch of another part, name the part"
}

check_cover_letter()
{
	[[ -n $(sed -n 1p "$COVER") && -z $(sed -n 2p "$COVER") ]] ||
		die "$COVER does not begin with a subject and an empty line" "correct it"
	((OPT_VERSION == 1)) || grep -q -x "Changes in v$OPT_VERSION:" "$COVER" ||
		die "$COVER does not say what changed" "add 'Changes in v$OPT_VERSION:'"
	number_patches
}

open_output()
{
	OUT_DIR=$(realpath -m -- "${OPT_OUT:-$REPO_DIR/out/$TAG-$OPT_PART-submission}")
	MAILS=$OUT_DIR/mails
	# check-series.sh makes this repository and this tree.
	REPO=$OUT_DIR/series/queue/linux
	BASE=$OUT_DIR/series/queue/$TAG/linux
	mkdir -p -- "$OUT_DIR"
	log_to "$OUT_DIR/make-submission.log"
	rm -rf -- "$MAILS" "$OUT_DIR/recipients"
}

run_git()
{
	clean_git -C "$REPO" -c user.name="$NAME" -c user.email="$EMAIL" "$@"
}

# Make a commit of the sender from each patch. git takes subject and text of the cover letter from the
# description of the branch.
make_mails()
{
	local options=(--cover-letter --cover-from-description=subject --signoff --numbered --thread=shallow) patch

	((OPT_VERSION == 1)) || options+=(--reroll-count "$OPT_VERSION")
	[[ $OPT_RFC = no ]] || options+=(--rfc)
	run_git checkout -q -B mails "base/$TAG" || return
	for patch in "${BELOW[@]}" "${CHOSEN[@]}"; do
		{ echo "From: $NAME <$EMAIL>" && tail -n +2 "$SERIES_DIR/$patch"; } | run_git am -q -k || return
	done
	run_git config branch.mails.description "$LETTER" &&
		run_git format-patch -q "${options[@]}" --output-directory "$MAILS" -"${#CHOSEN[@]}"
}

# --no-tree is needed, because the source may have only the part of the tree that perf needs.
maintainers()
{
	find "$MAILS" -name '*.patch' ! -name '*0000-cover-letter.patch' -exec perl scripts/get_maintainer.pl \
		--no-tree --no-git --no-git-fallback --no-rolestats "$@" {} + | sort -u
}

# Each line of the file recipients is an argument of git send-email.
write_recipients()
{
	(cd -- "$BASE" && maintainers --no-l | sed 's/^/--to=/' &&
		maintainers --no-m --no-r | sed 's/^/--cc=/') >"$OUT_DIR/recipients" &&
		grep -q '^--to=' "$OUT_DIR/recipients"
}

print_commands()
{
	local command="xargs -d '\n' -a $OUT_DIR/recipients git send-email"

	msg "mails     $MAILS ($(find "$MAILS" -name '*.patch' | wc -l))"
	msg "recipients $OUT_DIR/recipients ($(wc -l <"$OUT_DIR/recipients"))"
	msg "read the mails, then send them with git send-email (package git-email):"
	printf '%s --dry-run %s/*.patch\n' "$command" "$MAILS"
	printf '%s %s/*.patch\n' "$command" "$MAILS"
}

OPT_VERSION=1 OPT_RFC=no OPT_PART='' OPT_OUT=''

options__parse "$@" <<-'END'
	--part:		OPT_PART
	--version:	OPT_VERSION
	--rfc		OPT_RFC		yes
	--out:		OPT_OUT
END
check_options
load_submitter
choose_patches
check_cover_letter
open_output
STATUS=0
run_logged "check the series" "$SCRIPTS_DIR/check-series.sh" --fast --out "$OUT_DIR/series" "$TAG" || STATUS=$?
((STATUS < 2)) || die_logged "the series could not be checked" "see the log"
if ((STATUS)); then
	sed -n 's/^FAILED/  &/p' "$LOG_FILE" >&2
	warn "check-series.sh --fast $TAG refuses the series, see $LOG_FILE"
	end_failed
fi
run_logged "make the mails" make_mails || die_logged "the mails can't be made" "see the log"
run_logged "ask get_maintainer.pl" write_recipients || die_logged "no recipients" "see the log"
print_commands
