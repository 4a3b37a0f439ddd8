#!/usr/bin/env bash
# On a machine with an NVIDIA GPU: runs the tests that need one, and measures, in under 8 minutes.
#   gpu-check.sh [OPTION...] OUTPUT
# In an unpacked bundle (gpu-bundle.sh) it runs the programs that lie beside it, and needs nothing but bash, coreutils
# and tar; in a source tree it builds them first. The folder OUTPUT gets summary.md (one page), a log and a line of
# steps.tsv a part, and the JSON of every command. OUTPUT.tar.gz holds all of that, and is written anew after each
# part and while a long one runs, so that it is there whenever the machine goes away. A part that fails is recorded
# and stops no other.
#   --build FOLDER        runs what this build made, without building
#   --cpu                 a dry run without a GPU: the same commands on the CPU, with a small model
#   --model NAME, --weights LIST, --batch LIST, --context LIST   what is measured
#   --limit PART=SECONDS  for this part another limit than the table's below; may be repeated
# The exit status is 0 where no part failed, 1 where one did, 2 where nothing can run here (a wrong argument, no GPU, a
# glibc that is too old), 128 and its number after a signal.
# Nothing is downloaded: dependencies are the installed ones, and those under the prefixes of CMAKE_PREFIX_PATH.
set -uo pipefail

here=$(cd -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")" && pwd)
for file in dependencies.sh gpu-parts.sh; do
  if [[ ! -r $here/$file ]]; then
    echo "gpu-check.sh: $here/$file is missing: keep the files of the bundle together" >&2
    exit 2
  fi
done
# shellcheck source-path=SCRIPTDIR source=dependencies.sh
source "$here/dependencies.sh"
# shellcheck source-path=SCRIPTDIR source=gpu-parts.sh
source "$here/gpu-parts.sh"

readonly total_seconds=470  # in all, with a margin for what ends late
# The seconds after which a part gets SIGTERM. configure and build are a source tree's only, at the cost of what comes
# last.
declare -A limits=(
  [configure]=40
  [build]=200
  [facts]=15
  [devices]=20
  [smoke]=20
  [sanitizer]=60
  [gpu-tests]=75
  [measure]=245
)
# The seconds until SIGKILL, where 2 are too few: memwall writes what it has measured.
declare -A graces=([measure]=15)

usage() {
  echo "usage: gpu-check.sh [--cpu] [--build FOLDER] [--model NAME] [--weights LIST] [--batch LIST] [--context LIST]" \
    "[--limit PART=SECONDS] OUTPUT" >&2
  exit 2
}

device=cuda:0
build=
model=
weights=bf16,f8_e4m3,q4_0
batches=
contexts=
while [[ ${1:-} == --* ]]; do
  option=$1
  shift
  if [[ $option == --cpu ]]; then
    device=cpu
    continue
  fi
  [[ -n ${1:-} ]] || usage
  case $option in
    --build)
      if [[ ! -d $1 ]]; then
        say "--build: there is no folder $1"
        exit 2
      fi
      build=$(cd -- "$1" && pwd)
      ;;
    --model) model=$1 ;;
    --weights) weights=$1 ;;
    --batch) batches=$1 ;;
    --context) contexts=$1 ;;
    --limit)
      [[ $1 =~ ^([a-z-]+)=([1-9][0-9]{0,3})$ && -n ${limits[${BASH_REMATCH[1]}]:-} ]] || usage
      limits[${BASH_REMATCH[1]}]=${BASH_REMATCH[2]}
      ;;
    *) usage ;;
  esac
  shift
done
[[ $# -eq 1 && -n $1 ]] || usage
if [[ $device == cpu ]]; then
  : "${model:=smollm2-135m}" "${batches:=1}" "${contexts:=1024}"
else
  : "${model:=llama-3.1-8b}" "${batches:=1,8,64}" "${contexts:=1024,8192}"
fi

open_results "$1"

# compute-sanitizer finds wrong accesses; but it does not work on every machine that runs CUDA.
sanitizer_step() {
  local sanitizer='' folder
  sanitizer=$(command -v compute-sanitizer) ||
    for folder in "${CUDA_HOME:-}" "${CUDA_PATH:-}" /usr/local/cuda /usr/local/cuda-*; do
      for place in "$folder/bin" "$folder/compute-sanitizer"; do
        if [[ -z $sanitizer && -n $folder && -x $place/compute-sanitizer ]]; then sanitizer=$place/compute-sanitizer; fi
      done
    done
  if [[ -z $sanitizer ]]; then
    record sanitizer "not run: there is no compute-sanitizer" 0
    return
  fi
  run sanitizer "$sanitizer" --tool memcheck --report-api-errors no --error-exitcode 99 "$tests" "$smoke_tests"
  case $outcome in
    passed | "not run"* | "stopped by"*) ;;
    "failed with status 99") failed=1 ;;
    *) outcome="does not work here: $outcome" ;;
  esac
  if [[ $outcome != passed ]]; then say "sanitizer: $outcome"; fi
  record sanitizer "$outcome" "$took"
}

# The machine, for whoever reads the results.
# shellcheck disable=SC2317 # a bash of its own calls it
facts() {
  date -u
  uname -a
  head -n 2 /etc/os-release
  getconf GNU_LIBC_VERSION
  grep -m 1 'model name' /proc/cpuinfo
  nproc
  grep -E 'MemTotal|MemAvailable' /proc/meminfo
  echo "CUDA_VISIBLE_DEVICES=${CUDA_VISIBLE_DEVICES-} LD_LIBRARY_PATH=${LD_LIBRARY_PATH-}"
  if command -v nvidia-smi >/dev/null; then
    nvidia-smi
    nvidia-smi -q -d CLOCK,POWER,PERFORMANCE,ECC
  else
    echo "there is no nvidia-smi"
  fi
  return 0
}

configure() {
  local arguments=(-DCMAKE_BUILD_TYPE=Release -DMEMWALL_BUILD_TESTS=ON -DFETCHCONTENT_FULLY_DISCONNECTED=ON)
  if [[ $device != cpu ]]; then
    arguments+=(-DMEMWALL_CUDA=ON)
    # This machine's architecture alone: a seventh of the time.
    local capability
    capability=$(timeout 10 nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | head -n 1 | tr -d .)
    if [[ $capability =~ ^[0-9]+$ ]]; then arguments+=("-DMEMWALL_CUDA_ARCHITECTURES=$capability"); fi
  fi
  if [[ -z ${CMAKE_GENERATOR:-} ]] && command -v ninja >/dev/null; then export CMAKE_GENERATOR=Ninja; fi
  step configure cmake -S "$source" -B "$build" "${arguments[@]}"
}

# A module that the environment names speaks for itself: the tests' is a machine of its own.
has_gpu() {
  [[ -n ${MEMWALL_CUDA_MODULE:-} || -e /dev/dxg ]] || compgen -G '/dev/nvidia[0-9]*' >/dev/null ||
    timeout 10 nvidia-smi -L >/dev/null 2>&1
}

# Where containers get their driver from, if the loader does not know.
for folder in /usr/local/nvidia/lib64 /usr/lib/wsl/lib; do
  if [[ -e $folder/libcuda.so.1 ]]; then export LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$folder; fi
done
PATH=$PATH:/usr/local/nvidia/bin:/usr/lib/wsl/lib

if [[ $device != cpu ]] && ! has_gpu; then
  refuse "there is no NVIDIA GPU here (no /dev/nvidia0, and nvidia-smi finds none), as $archive says; --cpu makes a dry run"
fi

if [[ -z $build && -x $here/bin/memwall ]]; then
  bundle=$here
  memwall=$bundle/bin/memwall
  tests=$bundle/bin/memwall_gpu_tests
  glibc=$(getconf GNU_LIBC_VERSION 2>/dev/null)
  wanted=$(cat "$bundle/glibc")
  if [[ $glibc == "glibc "* && $(printf '%s\n' "$wanted" "${glibc#* }" | sort -V | head -n 1) != "$wanted" ]]; then
    refuse "this bundle needs glibc $wanted, and here is ${glibc#* }: build the source tree here, or a bundle where it is as old"
  fi
  if ! words=$("$memwall" --version 2>&1); then refuse "$memwall does not start: ${words%%$'\n'*}"; fi
else
  source=$(cd -- "$here/.." && pwd)
  IFS=':;' read -r -a prefixes <<<"${CMAKE_PREFIX_PATH:-}"
  for prefix in "${prefixes[@]}"; do
    for folder in "$prefix"/lib "$prefix"/lib64 "$prefix"/lib/*-linux-gnu; do
      if [[ -d $folder ]]; then export LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$folder; fi
    done
  done
  if [[ -z $build ]]; then
    build=$source/build/gpu-check
    configure
    targets=(memwall)
    if [[ $device != cpu ]]; then targets+=(memwall_cuda memwall_gpu_tests); fi
    # As far as it comes: what does not compile may not be needed.
    keep_going=(-k)
    if [[ -e $build/build.ninja ]]; then keep_going=(-k 0); fi
    step build cmake --build "$build" --parallel "$(build_jobs)" --target "${targets[@]}" -- "${keep_going[@]}"
  fi
  memwall=$build/memwall
  tests=$build/tests/memwall_gpu_tests
  export MEMWALL_DATA=$source
  if [[ -z ${MEMWALL_CUDA_MODULE:-} && -e $build/libmemwall_cuda.so ]]; then
    export MEMWALL_CUDA_MODULE=$build/libmemwall_cuda.so
  fi
fi

export -f facts
step facts bash -c facts
step devices "$memwall" devices --format json --output "$output/devices.json"
if [[ $device != cpu ]]; then
  export MEMWALL_REQUIRE_GPU=1
  smoke_tests='--gtest_filter=CudaGpuSmoke*'
  test_step smoke "$tests" "$smoke_tests"
  sanitizer_step
  test_step gpu-tests "$tests" '--gtest_filter=CudaGpu*-CudaGpuSmoke*'
fi
# One command for all of it: what the device's peaks are is found once. A GPU that hangs shall leave time for the rest.
export MEMWALL_GPU_PATIENCE=${MEMWALL_GPU_PATIENCE:-30}
step measure "$memwall" measure "$model" --device "$device" --weights "$weights" --batch "$batches" \
  --context "$contexts" --prompt 0 --step --format json --output "$output/measure.json"

write_page
write_archive
say "the summary is $output/summary.md; everything is in $archive"
if [[ -n $stopped ]]; then exit $((128 + $(kill -l "$stopped"))); fi
exit "$failed"
