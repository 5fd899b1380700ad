# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Parse the arguments of the scripts: options, and one TAG at the end. In a script with a function
# print_usage, which -h and --help call:
#
#	options__parse "$@" <<-'END'
#		--clean		OPT_CLEAN	yes
#		--out:		OPT_OUT
#		--sanitize::	OPT_SANITIZE	address
#	END
#
# A line has an option, the variable that it sets, and the value. An option with a colon has an
# argument, which is the value. With two colons, the argument is optional. A variable keeps its value
# if its option isn't given.
#
# Sets:
#	TAG
#	OPTIONS_PASSED	the given options that scripts pass on to other scripts: --mirror,
#			--jobs, --no-install

. "${BASH_SOURCE[0]%/*}/common.sh"

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
		--no-install)		OPTIONS_PASSED+=("$1") ;;
		esac
		value=${values[$option]}
		if [[ -n ${has_argument[$option]:-} ]]; then
			value=${2:-$value}
			shift
		fi
		[[ $option != --jobs || $value =~ ^[1-9][0-9]*$ ]] || die_usage "--jobs $value: not a number from 1 up"
		printf -v "${variables[$option]}" %s "$value"
		shift
	done
	shift
	(($# == 1)) || die_usage "one TAG is needed, $# given"
	TAG=$1
}
