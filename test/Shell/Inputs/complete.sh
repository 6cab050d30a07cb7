# complete.sh COMPLETIONS WORD...: what bash offers for the last word.
source "$1"
shift
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
_accel_opt
printf '%s\n' "${COMPREPLY[@]}"
