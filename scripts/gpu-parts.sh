# shellcheck shell=bash
# Sourced by gpu-check.sh: runs its parts, each for at most so many seconds, and keeps the results of all.
# shellcheck disable=SC2154 # gpu-check.sh sets here, total_seconds, limits, graces

# Where results go: `output`, the folder, `archive` beside it. Whatever cannot be written there is said now, not after
# minutes on a GPU.
open_results() {
  local folder
  if [[ ! -d $1 ]] && ! mkdir -p -- "$1" 2>/dev/null; then
    say "$1 is no folder that can be made"
    exit 2
  fi
  # The archive's name is as given, its content that of the folder behind a link.
  folder=$(cd -- "$1" && pwd) && output=$(cd -- "$1" && pwd -P) || exit 2
  if [[ $output == / ]]; then
    say "$1 is the root folder: name one for the results"
    exit 2
  fi
  archive=$folder.tar.gz
  if [[ -d $archive ]]; then
    say "$archive is a folder: the archive of the results would go there"
    exit 2
  fi
  local file
  for file in "$archive.new" "$output/steps.tsv"; do
    if [[ -d $file ]] || ! : 2>/dev/null >>"$file"; then
      rm -f -- "$archive.new" 2>/dev/null
      say "$file cannot be written"
      exit 2
    fi
  done
  own_files=(steps.tsv summary.md summary.log devices.json measure.json)
  local part
  for part in "${!limits[@]}"; do own_files+=("$part.log"); done
  rm -f -- "$archive" "$archive.new"
  (cd -- "$output" && rm -f -- "${own_files[@]}")
}

steps=()  # a line a part: its name, its outcome, its seconds
failed=0
stopped=  # the signal that asked for the end
trap 'stopped=HUP' HUP
trap 'stopped=INT' INT
trap 'stopped=TERM' TERM

# The parts alone; the whole page comes at the end.
write_steps() {
  local line
  printf '%s\n' "${steps[@]}" >"$output/steps.tsv"
  {
    printf '# GPU check\n\n| step | outcome | s |\n| --- | --- | --- |\n'
    for line in "${steps[@]}"; do printf '| %s |\n' "${line//$'\t'/ | }"; done
  } >"$output/summary.md"
}

write_page() {
  local page=$output/summary.md
  command -v python3 >/dev/null || return
  if timeout --kill-after=2 5 python3 "$here/gpu-summary.py" "$output" >"$page.new" 2>"$output/summary.log" </dev/null; then
    mv -f -- "$page.new" "$page"
    rm -f -- "$output/summary.log"
  else
    rm -f -- "$page.new"
    say "gpu-summary.py failed; $page is only the list of parts"
    failed=1
  fi
}

# All of the results, in one file that is either the last one or this one. What else lies in the folder is not ours.
write_archive() {
  local name statuses each present=()
  name=$(basename -- "$output")
  for each in "${own_files[@]}"; do
    if [[ -e $output/$each ]]; then present+=("$name/$each"); fi
  done
  tar -C "$(dirname -- "$output")" -cf - -- "${present[@]}" 2>/dev/null | gzip >"$archive.new" 2>/dev/null
  statuses=("${PIPESTATUS[@]}")
  # tar's 1: a file grew meanwhile.
  if ((statuses[0] <= 1 && statuses[1] == 0)) && mv -fT -- "$archive.new" "$archive" 2>/dev/null; then return; fi
  say "$archive cannot be written"
  failed=1
}

# record PART OUTCOME SECONDS: the line of a part, in place of the one that says that it began.
record() {
  local line
  line=$(printf '%s\t%s\t%d' "$1" "${2//$'\t'/ }" "$3")
  if ((${#steps[@]} > 0)) && [[ ${steps[-1]} == "$1"$'\t'* ]]; then
    steps[-1]=$line
  else
    steps+=("$line")
  fi
  write_steps
  write_archive
}

# Nothing can run here: one line, which the results say too.
refuse() {
  say "$1"
  record machine "failed: $1" 0
  exit 2
}

# Waits until process $1 ends, $2 seconds at most, and hands a signal on; false where it does not end. A process that
# the driver holds cannot even be killed.
wait_for() {
  local process=$1 end=$((SECONDS + $2 + 3)) next=$((SECONDS + 20)) told=
  while kill -0 "$process" 2>/dev/null; do
    if [[ -n $stopped && -z $told ]]; then
      told=yes
      kill -TERM "$process" 2>/dev/null
      write_archive
      end=$((SECONDS + grace + 3))
    elif ((SECONDS >= end)); then
      return 1
    elif ((SECONDS >= next)); then
      write_archive
      next=$((SECONDS + 20))
    fi
    sleep 0.1
  done
}

# run PART COMMAND...: in a process group of its own, for at most the seconds of its limit; its words go to PART.log,
# its outcome to `outcome`, and how long it took to `took`.
run() {
  local part=$1 limit=${limits[$1]} start=$SECONDS status=0 process grace
  shift
  took=0
  if [[ -n $stopped ]]; then
    outcome="not run: stopped by SIG$stopped"
    return
  fi
  grace=${graces[$part]:-2}
  if ((limit > total_seconds - grace - SECONDS)); then limit=$((total_seconds - grace - SECONDS)); fi
  if ((limit < 2)); then
    outcome="not run: no time left"
    return
  fi
  say "$part (at most $limit s): $*"
  record "$part" "began, and did not end" 0
  timeout --signal=TERM --kill-after="$grace" "$limit" "$@" >"$output/$part.log" 2>&1 </dev/null &
  process=$!
  if wait_for "$process" $((limit + grace)); then
    wait "$process" 2>/dev/null || status=$?
    took=$((SECONDS - start))
    case $status in
      0) outcome=passed ;;
      124) outcome="stopped at its limit of $limit s" ;;
      *) if ((status > 128)); then outcome="ended by SIG$(kill -l "$status")"; else outcome="failed with status $status"; fi ;;
    esac
    if ((status == 137 && took >= limit)); then outcome="killed at its limit of $limit s"; fi
  else
    took=$((SECONDS - start))
    outcome="does not end, even when killed"
  fi
  kill -KILL -- "-$process" 2>/dev/null  # what it left behind
  if [[ -n $stopped ]]; then outcome="stopped by SIG$stopped"; fi
}

# Records the part that ran.
done_with() {
  if [[ $outcome != passed ]]; then
    failed=1
    say "$1: $outcome"
    [[ ! -s $output/$1.log ]] || tail -n 5 "$output/$1.log" >&2
  fi
  record "$1" "$outcome" "$took"
}

step() {
  run "$@"
  done_with "$1"
}

# Parts that are tests: what a test program says beside its exit status. On this machine a test that is skipped has
# failed, unless it wants cuBLAS and there is none; so has a program that runs no test.
judge_tests() {
  local line name reason='' ran=0 skipped=()
  while IFS= read -r line; do
    case $line in
      *": Skipped") IFS= read -r reason || break ;;
      "[       OK ] "*) ran=$((ran + 1)) ;;
      "[  SKIPPED ] "*" ms)")
        name=${line#"[  SKIPPED ] "}
        if [[ $reason != "no cuBLAS: "* ]]; then skipped+=("${name% (*} ($reason)"); fi
        reason=
        ;;
    esac
  done <"$1"
  if ((${#skipped[@]} > 0)); then
    outcome="failed: skipped ${#skipped[@]}, the first ${skipped[0]}"
  elif ((ran == 0)); then
    outcome="failed: no test ran"
  fi
}

test_step() {
  run "$@"
  if [[ $outcome == passed ]]; then judge_tests "$output/$1.log"; fi
  done_with "$1"
}
