# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# An ordinary user. Source it after test-lib.sh.

# as_nobody COMMAND...: run the command as this user
as_nobody()
{
	"${AS_NOBODY[@]}" "$@"
}

# prepare_nobody: let an ordinary user record to $TMP/nobody/, or skip
prepare_nobody()
{
	AS_NOBODY=(setpriv --reuid 65534 --regid 65534 --clear-groups env HOME="$TMP/nobody")
	chmod 711 "$TMP"
	mkdir -p "$TMP/nobody"
	chown 65534:65534 "$TMP/nobody"
	as_nobody test -x "$PBM_PERF" || skip "an unprivileged user cannot reach $PBM_PERF"
	(($(cat /proc/sys/kernel/perf_event_paranoid) <= 2)) ||
		skip "perf_event_paranoid is above 2: no recording without privilege"
}
