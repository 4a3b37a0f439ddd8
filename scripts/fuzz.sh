#!/usr/bin/env bash
# Builds the fuzzers with clang and runs them, each from its seeds in fuzz/corpus.
#   scripts/fuzz.sh [-merge] SECONDS [TARGET...]    SECONDS each; without a TARGET: all in fuzz/*_target.cpp
# What they find stays under build/fuzz; -merge copies the inputs that reach new code into fuzz/corpus.
# Fails on a crash, a leak, an input of more than 5 seconds or a process of more than 256 MiB.
set -euo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source-path=SCRIPTDIR source=dependencies.sh
source "$root/scripts/dependencies.sh"
cd -- "$root"

merge=0
if [[ ${1:-} == -merge ]]; then
  merge=1
  shift
fi
if [[ ! ${1:-} =~ ^[1-9][0-9]*$ ]]; then
  echo "usage: scripts/fuzz.sh [-merge] SECONDS [TARGET...]" >&2
  exit 2
fi
seconds=$1
shift
targets=("$@")
if [[ ${#targets[@]} -eq 0 ]]; then
  for source in fuzz/*_target.cpp; do targets+=("$(basename -- "$source" _target.cpp)"); done
fi
for target in "${targets[@]}"; do
  if [[ ! -f fuzz/${target}_target.cpp ]]; then
    say "there is no target '$target': fuzz/${target}_target.cpp is missing"
    exit 2
  fi
done

ensure_packages "${build_packages[@]}" "${fuzz_packages[@]}"
compiler=${CLANGXX:-clang++}
if ! command -v "$compiler" >/dev/null; then
  say "there is no $compiler: libFuzzer comes with clang (Debian: apt-get install ${fuzz_packages[*]});"
  say "CLANGXX names another one"
  exit 1
fi
if [[ -z ${CMAKE_GENERATOR:-} ]] && command -v ninja >/dev/null; then export CMAKE_GENERATOR=Ninja; fi
cmake -S . -B build/fuzz -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_BUILD_TYPE=RelWithDebInfo \
  -DCMAKE_CXX_FLAGS_RELWITHDEBINFO="-O1 -g" -DCMAKE_CXX_FLAGS=-D_GLIBCXX_ASSERTIONS \
  -DMEMWALL_SANITIZE=address,undefined -DMEMWALL_BUILD_FUZZERS=ON -DMEMWALL_BUILD_TESTS=OFF >&2
cmake --build build/fuzz --parallel "$(build_jobs)" --target "${targets[@]/#/fuzz_}" >&2

# The sanitizer keeps freed memory for a while, 256 MiB by default, which is not the reader's doing.
export ASAN_OPTIONS=quarantine_size_mb=16${ASAN_OPTIONS:+:$ASAN_OPTIONS}
export UBSAN_OPTIONS=print_stacktrace=1${UBSAN_OPTIONS:+:$UBSAN_OPTIONS}
failed=()
for target in "${targets[@]}"; do
  program=build/fuzz/fuzz/fuzz_$target
  seeds=fuzz/corpus/$target
  scratch=build/fuzz/corpus/$target
  findings=build/fuzz/findings/$target
  log=build/fuzz/$target.log
  mkdir -p "$seeds" "$scratch" "$findings"
  limits=(-rss_limit_mb=256 -timeout=5)
  say "$target: $seconds s, log in $log"
  if ! "$program" "${limits[@]}" -max_total_time="$seconds" -artifact_prefix="$findings/" \
    "$scratch" "$seeds" >"$log" 2>&1; then
    tail -n 40 "$log" >&2
    say "$target: FAILED; the input is in $findings, repeat it with: $program FILE"
    failed+=("$target")
    continue
  fi
  say "$target: $(tail -n 1 "$log")"
  if ((merge)); then "$program" "${limits[@]}" -merge=1 "$seeds" "$scratch" >>"$log" 2>&1; fi
done
if [[ ${#failed[@]} -gt 0 ]]; then
  say "failed: ${failed[*]}"
  exit 1
fi
