# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The options of the scripts, which all end with one TAG.
#
# Usage (after lib/common.sh, with a function print_usage):
#	options__parse "$@" <<-'END'
#		--clean		OPT_CLEAN	yes
#		--out:		OPT_OUT
#		--sanitize::	OPT_SANITIZE	address
#		--peer:		PEERS[]
#	END
#
# A line is an option, the variable that it sets, and the value. With a colon the
# option has an argument, which is the value; with two it may have one. [] adds to
# an array. A variable keeps its value if its option isn't given. -h and --help call
# print_usage.
#
# Sets:
#	TAG
#	OPTIONS_PASSED	what was given of the options that scripts pass on to others:
#			--mirror, --jobs, --no-install, --quiet

options__set()
{
	if [[ $1 = *'[]' ]]; then
		local -n array=${1%'[]'}
		array+=("$2")
	else
		printf -v "$1" %s "$2"
	fi
}

# shellcheck disable=SC2034 # the scripts read TAG and OPTIONS_PASSED
options__parse()
{
	local option variable value parsed short=h long=help
	local -A variables values has_argument

	while read -r option variable value; do
		case $option in
		--*)	long+=,${option#--} ;;
		*)	short+=${option#-} ;;
		esac
		[[ $option != *: ]] || has_argument[${option%%:*}]=yes
		variables[${option%%:*}]=$variable
		values[${option%%:*}]=$value
	done
	parsed=$(getopt --name "$PROGRAM" --options "$short" --longoptions "$long" -- "$@") ||
		die_usage "wrong options"
	eval set -- "$parsed"
	OPTIONS_PASSED=()
	while [[ $1 != -- ]]; do
		option=$1
		case $option in
		-h|--help)		print_usage; exit 0 ;;
		--mirror|--jobs)	OPTIONS_PASSED+=("$1" "$2") ;;
		--no-install|--quiet)	OPTIONS_PASSED+=("$1") ;;
		esac
		value=${values[$option]}
		if [[ -n ${has_argument[$option]:-} ]]; then
			value=${2:-$value}
			shift
		fi
		options__set "${variables[$option]}" "$value"
		shift
	done
	shift
	[[ $# -eq 1 ]] || die_usage "one TAG is needed, $# given"
	TAG=$1
}
