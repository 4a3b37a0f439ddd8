# shellcheck shell=bash
# Sourced by quickstart.sh: what is wrong with arguments of `memwall measure` as far as it can be told without the
# program, so that a slip of the pen does not cost a build. The program judges all of them itself; what is let
# through here may still be refused there, never the other way round (tests/scripts/quickstart_test.cpp holds this
# to the program).

# The options that take a value, and those that take none.
measure_options() {
  printf '%s\n' --weights --head-weights --kv --batch -b --context -c --prompt --seed --device --threads --cpus \
    --numa --memory --format --output -o
}
measure_flags() { printf '%s\n' --step --ops --strict --help -h; }

# Letters and digits in lower case, as format words are compared.
compact() {
  local word=${1,,}
  printf '%s' "${word//[!a-z0-9]/}"
}

# The words of formats, from the tables that the program is built from: compact, one a line.
format_stems() {
  local tables=$1/src/format
  {
    grep -ohE '(Kv)?Layout\{[A-Za-z:_0-9]+, "[^"]+"' "$tables/format.cpp" | sed 's/.*"\(.*\)"/\1/'
    grep -ohE '(Meaning|Mix)\{"[^"]+"' "$tables/format_words.cpp" | sed 's/.*{"\(.*\)"/\1/'
  } | tr 'A-Z ' 'a-z\n' | sed 's/[^a-z0-9]//g' | sort -u
  printf 'int%s\n' 2 3 4 5 6 8
}

# True where the word holds a format's.
names_format() {
  local word stem
  word=$(compact "$1")
  while read -r stem; do
    [[ -n $stem && $word == *"$stem"* ]] && return 0
  done <<<"$measure_stems"
  return 1
}

refuse_argument() {
  printf '%s: error: %s\n' "$(basename -- "$0")" "$*" >&2
  exit 2
}

# check_list OPTION LIST PATTERN WHAT: every item matches the whole pattern.
check_list() {
  local option=$1 rest=$2, pattern=$3 what=$4 item
  while [[ -n $rest ]]; do
    item=${rest%%,*}
    rest=${rest#*,}
    [[ -n $item ]] || refuse_argument "$option: an item of the list is empty; write items with one comma between"
    [[ $item =~ ^($pattern)$ ]] || refuse_argument "$option: '$item' is $what"
  done
}

# check_formats OPTION LIST: names, or PART=NAME with ';' between alternatives.
check_formats() {
  local option=$1 rest=$2, item
  rest=${rest//;/,}
  while [[ -n $rest ]]; do
    item=${rest%%,*}
    rest=${rest#*,}
    [[ -n $item ]] || refuse_argument "$option: an item of the list is empty; write formats with one comma between"
    names_format "${item#*=}" || refuse_argument "$option: unknown format '${item#*=}'; f16, q8_0 and q4_k are some"
  done
}

check_measure_value() {
  local option=$1 value=$2
  local count='[0-9]+[kKmM]?'
  local range="$count(-$count([+*]$count)?)?"
  case $option in
    --weights | --head-weights | --kv) check_formats "$option" "$value" ;;
    --batch | -b | --context | -c)
      check_list "$option" "$value" "$range" "no count; write whole numbers like 1,8 or 1-64*2"
      check_list "$option" "$value" '.*[1-9].*' "out of range; it must be 1 or more"
      ;;
    --prompt) check_list "$option" "$value" "$range" "no count; write whole numbers like 512,4k, or 0 for none" ;;
    --seed) [[ $value =~ ^[0-9]+$ ]] || refuse_argument "--seed: '$value' is not a whole number from 0 on" ;;
    --threads) [[ $value =~ ^0*[1-9][0-9]*$ ]] || refuse_argument "--threads: '$value' is no number from 1 on" ;;
    --cpus) check_list --cpus "$value" '[0-9]+(-[0-9]+)?' "no list of CPUs such as 0-3,8" ;;
    --numa)
      [[ $value == local || $value == interleave ]] ||
        refuse_argument "--numa: '$value' is neither local nor interleave"
      ;;
    --memory)
      [[ $value =~ ^[0-9.]+([KMGT]i?B)?$ ]] ||
        refuse_argument "--memory: '$value' is not a size; write bytes or a number with MiB or GiB, like 2GiB"
      ;;
    --device)
      [[ $value =~ ^(auto|cpu|cuda:[0-9]+)$ ]] ||
        refuse_argument "--device: '$value' is no device; it is auto, cpu or cuda:N"
      ;;
    --format)
      [[ ${value,,} =~ ^(table|json|csv|md|markdown)$ ]] ||
        refuse_argument "--format: '$value' is none of table, json, csv, md"
      ;;
    --output | -o)
      [[ -n $value && -d $(dirname -- "$value") && ! -d $value ]] ||
        refuse_argument "$option: '$value' cannot be written: there is no such folder, or it is one"
      ;;
  esac
}

# check_measure_arguments ROOT [ARGUMENT...]: of `memwall measure MODEL`. Says what is wrong in one line and exits
# with 2; ROOT is the source tree.
check_measure_arguments() {
  local root=$1 word name value
  shift
  measure_stems=$(format_stems "$root")
  while [[ $# -gt 0 ]]; do
    word=$1
    shift
    if [[ $word == -h || $word == --help ]]; then return 0; fi
    name=${word%%=*}
    if measure_flags | grep -qxF -- "$word"; then continue; fi
    if [[ $word =~ ^-[a-z]. ]]; then  # -b8
      set -- "${word:2}" "$@"
      name=${word:0:2}
      word=$name
    fi
    if ! measure_options | grep -qxF -- "$name"; then
      if [[ $name == -* ]]; then
        refuse_argument "unknown option '$name'; memwall measure has $(measure_options | grep -e -- | paste -sd' ')" \
          "$(measure_flags | grep -e -- | paste -sd' ')"
      fi
      refuse_argument "one argument too many: '$word'; the model is llama-3.2-1b, and a list has commas and no blanks"
    fi
    if [[ $word == *=* ]]; then
      value=${word#*=}
    else
      [[ $# -gt 0 ]] || refuse_argument "$name: its value is missing"
      value=$1
      shift
    fi
    check_measure_value "$name" "$value"
  done
}
