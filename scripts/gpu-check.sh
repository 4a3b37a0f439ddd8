#!/usr/bin/env bash
# On a machine with an NVIDIA GPU: builds, runs the tests that need one, and measures, in under 8 minutes.
#   scripts/gpu-check.sh [--cpu] [--build FOLDER] OUTPUT
# OUTPUT gets summary.md (one page), the JSON of every command, and a log and a line of steps.tsv a step; a step
# that fails is recorded and does not stop the rest. The exit status is 0 where none failed.
#   --build FOLDER  runs memwall from this build, without building
#   --cpu           a dry run without a GPU: the same commands on the CPU, with a small model
# Nothing is downloaded: dependencies are the installed ones, and those under the prefixes of CMAKE_PREFIX_PATH.
set -euo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source-path=SCRIPTDIR source=dependencies.sh
source "$root/scripts/dependencies.sh"

readonly total_seconds=470  # in all, with a margin for what ends late
usage() {
  echo "usage: scripts/gpu-check.sh [--cpu] [--build FOLDER] OUTPUT" >&2
  exit 2
}

device=cuda:0
build=
while [[ ${1:-} == --* ]]; do
  case $1 in
    --cpu) device=cpu ;;
    --build)
      [[ -n ${2:-} ]] || usage
      if [[ ! -d $2 ]]; then
        say "--build: there is no folder $2"
        exit 2
      fi
      build=$(cd -- "$2" && pwd)
      shift
      ;;
    *) usage ;;
  esac
  shift
done
[[ $# -eq 1 && -n $1 ]] || usage

has_gpu() { compgen -G '/dev/nvidia[0-9]*' >/dev/null || nvidia-smi -L >/dev/null 2>&1; }
if [[ $device != cpu ]] && ! has_gpu; then
  say "there is no NVIDIA GPU here (no /dev/nvidia0, and nvidia-smi finds none); --cpu makes a dry run"
  exit 1
fi
if ! mkdir -p -- "$1" 2>/dev/null; then
  say "$1 is no folder that can be made"
  exit 2
fi
output=$(cd -- "$1" && pwd)

: >"$output/steps.tsv"
failed=0

# step NAME SECONDS COMMAND...: at most so long, its words in NAME.log, its outcome in steps.tsv.
step() {
  local name=$1 limit=$2 start=$SECONDS status=0 outcome
  shift 2
  if ((limit > total_seconds - SECONDS)); then limit=$((total_seconds - SECONDS)); fi
  if ((limit < 5)); then
    outcome="skipped: no time left"
    status=1
  else
    say "$name (at most $limit s): $*"
    # SIGTERM: memwall then writes what it has measured.
    timeout --signal=TERM --kill-after=10 "$limit" "$@" >"$output/$name.log" 2>&1 </dev/null || status=$?
    case $status in
      0) outcome=passed ;;
      124 | 137) outcome="stopped after $limit s" ;;
      *) outcome="failed with status $status" ;;
    esac
  fi
  printf '%s\t%s\t%d\n' "$name" "$outcome" $((SECONDS - start)) >>"$output/steps.tsv"
  if ((status != 0)); then
    failed=1
    say "$name: $outcome"
    [[ ! -s $output/$name.log ]] || tail -n 5 "$output/$name.log" >&2
  fi
  return 0
}

configure() {
  local arguments=(-DCMAKE_BUILD_TYPE=Release -DMEMWALL_BUILD_TESTS=ON -DFETCHCONTENT_FULLY_DISCONNECTED=ON)
  if [[ $device != cpu ]]; then
    arguments+=(-DMEMWALL_CUDA=ON)
    # This machine's architecture alone: a seventh of the time.
    local capability
    capability=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | head -n 1 | tr -d .) || true
    if [[ $capability =~ ^[0-9]+$ ]]; then arguments+=("-DMEMWALL_CUDA_ARCHITECTURES=$capability"); fi
  fi
  if [[ -z ${CMAKE_GENERATOR:-} ]] && command -v ninja >/dev/null; then export CMAKE_GENERATOR=Ninja; fi
  step configure 60 cmake -S "$root" -B "$build" "${arguments[@]}"
}

if [[ -z $build ]]; then
  build=$root/build/gpu-check
  configure
  targets=(memwall)
  if [[ $device != cpu ]]; then targets+=(memwall_cuda); fi
  step build 210 cmake --build "$build" --parallel "$(build_jobs)" --target "${targets[@]}"
  if [[ $device != cpu ]]; then
    step build-tests 120 cmake --build "$build" --parallel "$(build_jobs)" --target memwall_gpu_tests
  fi
fi
if [[ $device != cpu ]]; then
  # Those that ctest labels gpu, in one process: CUDA starts once, and the build may have moved.
  step gpu-tests 60 "$build/tests/memwall_gpu_tests" "--gtest_filter=CudaGpu*"
fi

if [[ ! -x $build/memwall ]]; then
  say "there is no $build/memwall to measure with"
  failed=1
else
  export MEMWALL_DATA=$root
  if [[ -e $build/libmemwall_cuda.so ]]; then export MEMWALL_CUDA_MODULE=$build/libmemwall_cuda.so; fi
  IFS=':;' read -r -a prefixes <<<"${CMAKE_PREFIX_PATH:-}"
  for prefix in "${prefixes[@]}"; do
    for folder in "$prefix"/lib "$prefix"/lib64 "$prefix"/lib/*-linux-gnu; do
      if [[ -d $folder ]]; then export LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$folder; fi
    done
  done

  model=llama-3.1-8b
  batches=1,8,64
  n=8192
  if [[ $device == cpu ]]; then
    model=smollm2-135m
    batches=1
    n=256
  fi
  memwall=$build/memwall
  step devices 20 "$memwall" devices --format json --output "$output/devices.json"
  step baseline 60 "$memwall" baseline --device "$device" --n "$n" --no-prompt --format json \
    --output "$output/baseline.json"
  for weights in bf16 f8_e4m3 q4_0; do
    step "measure-$weights" 100 "$memwall" measure "$model" --device "$device" --weights "$weights" \
      --batch "$batches" --prompt 0 --step --format json --output "$output/measure-$weights.json"
  done
fi

if command -v python3 >/dev/null; then
  python3 "$root/scripts/gpu-summary.py" "$output" >"$output/summary.md" || failed=1
else
  say "there is no python3, so the summary is only the list of steps"
  { printf '| step | outcome | s |\n| --- | --- | --- |\n'; sed 's/\t/ | /g; s/^/| /; s/$/ |/' "$output/steps.tsv"; } \
    >"$output/summary.md"
fi
say "the summary is $output/summary.md"
exit "$failed"
