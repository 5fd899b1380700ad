# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Find complaints of a kernel (warnings, stalls, crashes) in its log.
#
# Usage:
#	splats__print LOG	print the complaints in the log of a kernel
#
# Exit status: 0 there are complaints, 1 there are no complaints, 2 LOG cannot be read or
# is not the log of a kernel.

# These texts come from arch/, lib/, kernel/ and mm/ of the kernel.
SPLATS='BUG: |kernel BUG at |WARNING: |Kernel panic|Oops(:| - )|general protection fault|Unable to handle kernel|unable to handle (page fault|kernel)|INFO: task .* blocked for more than|INFO: rcu_.* (detected|self-detected)|rcu: INFO: |soft lockup|hard LOCKUP|INFO: lockdep|KASAN|KCSAN|UBSAN|Out of memory|invoked oom-killer|unreferenced object|refcount_t: |list_(add|del) corruption'

splats__print()
{
	local status=0

	grep -q 'Linux version ' -- "$1" || return 2
	grep -a -E -e "$SPLATS" -- "$1" || status=$?
	return "$status"
}
