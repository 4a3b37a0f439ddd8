#!/usr/bin/env bash
# Makes one archive with all that gpu-check.sh needs on a machine that has a GPU and its driver, but no toolkit, no
# compiler and no network: memwall, its CUDA backend for one architecture, the tests that need a GPU, the libraries
# they need beyond glibc, and a BLAS.
#   scripts/gpu-bundle.sh [--arch NUMBER] [--output FILE.tar.gz]
#   --arch    90 (the default: H100, H200) is compute capability 9.0. The archive holds its machine code, and its PTX
#             for newer cards
#   --output  by default build/memwall-gpu-sm_NUMBER.tar.gz
# Needs what a build with CUDA needs (a toolkit with nvcc, GoogleTest), binutils, and the reference BLAS (Debian:
# libblas3), which is small. The archive runs where glibc is as new as here; its file `glibc` says what it needs.
set -euo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source-path=SCRIPTDIR source=dependencies.sh
source "$root/scripts/dependencies.sh"

readonly most_bytes=$((60 << 20))
usage() {
  echo "usage: scripts/gpu-bundle.sh [--arch NUMBER] [--output FILE.tar.gz]" >&2
  exit 2
}
fail() {
  say "$1"
  exit 1
}

arch=90
file=
while [[ $# -gt 0 ]]; do
  case $1 in
    --arch)
      [[ ${2:-} =~ ^[0-9]{2,3}$ ]] || usage
      arch=$2
      ;;
    --output)
      [[ ${2:-} == *.tar.gz ]] || usage
      file=$2
      ;;
    *) usage ;;
  esac
  shift 2
done
name=memwall-gpu-sm_$arch
: "${file:=$root/build/$name.tar.gz}"

# The one with the C interface, as Debian's is.
find_blas() {
  local library
  for library in /usr/lib/*-linux-gnu/blas/libblas.so.3 /usr/lib64/libcblas.so.3; do
    if [[ -e $library ]] && objdump -T "$library" | grep -w cblas_sgemm >/dev/null; then
      echo "$library"
      return
    fi
  done
  return 1
}
for tool in cmake objdump ldd; do command -v "$tool" >/dev/null || fail "there is no $tool"; done
blas=$(find_blas) || fail "the reference BLAS with a C interface is missing (Debian: libblas3)"

stage=$(mktemp -d)
trap 'rm -rf -- "$stage"' EXIT
# Run paths are those of the folder that travels. DT_RPATH, not DT_RUNPATH: it holds for the libraries' own
# libraries, and for what the program opens at run time, too.
build=$root/build/gpu-bundle
if [[ -z ${CMAKE_GENERATOR:-} ]] && command -v ninja >/dev/null; then export CMAKE_GENERATOR=Ninja; fi
# shellcheck disable=SC2016 # the dynamic linker knows $ORIGIN
cmake -S "$root" -B "$build" -DCMAKE_BUILD_TYPE=Release -DMEMWALL_BUILD_TESTS=ON -DMEMWALL_CUDA=ON \
  "-DMEMWALL_CUDA_ARCHITECTURES=$arch" -DCMAKE_INSTALL_LIBDIR=lib '-DCMAKE_INSTALL_RPATH=$ORIGIN/../lib;$ORIGIN/..' \
  -DCMAKE_EXE_LINKER_FLAGS=-Wl,--disable-new-dtags 2>&1 | tee "$stage/configured" >&2
cmake --build "$build" --parallel "$(build_jobs)" --target memwall memwall_cuda memwall_gpu_tests >&2

folder=$stage/$name
cmake --install "$build" --strip --prefix "$folder" >/dev/null
cmake --install "$build" --strip --prefix "$folder" --component gpu_tests >/dev/null
cp -- "$root"/scripts/{gpu-check.sh,gpu-parts.sh,gpu-summary.py,dependencies.sh} "$folder"
cp -L -- "$blas" "$folder/lib"

# The libraries that a program or library here loads: "NAME PATH", one a line; glibc's own come with the system.
libraries_of() {
  ldd "$1" | sed -nE 's/^\s*(\S+) => (\S+).*/\1 \2/p' |
    grep -vE '^(libc|libm|libdl|libpthread|librt|libresolv|libutil)\.so\.|^ld-linux'
}
own_files() { find "$folder/bin" "$folder/lib" -type f; }
while read -r wanted path; do
  [[ $path == /* ]] || fail "$wanted is missing here"
  cp -L -- "$path" "$folder/lib/$wanted"
done < <(own_files | while read -r each; do libraries_of "$each"; done | grep -v " $stage/" | sort -u)
strip --strip-unneeded "$folder"/lib/*.so*
# Nothing of this machine is left, whoever asks.
while read -r each; do
  while read -r wanted path; do
    [[ $path == "$stage"/* ]] || fail "$each would load $path as $wanted"
  done < <(libraries_of "$each")
done < <(find "$folder/bin" -type f)

own_files | while read -r each; do objdump -T "$each"; done | grep -oE 'GLIBC_[0-9.]+' | sed 's/GLIBC_//' | sort -uV |
  tail -n 1 >"$folder/glibc"
echo "Run ./gpu-check.sh OUTPUT on a machine with an NVIDIA GPU and its driver, of glibc $(cat "$folder/glibc") or later." \
  >"$folder/README"

mkdir -p -- "$(dirname -- "$file")"
tar --sort=name --owner=0 --group=0 --numeric-owner -C "$stage" -cf - "$name" | gzip -9n >"$file"
bytes=$(stat -c %s "$file")
if ((bytes > most_bytes)); then
  rm -- "$file"
  fail "the archive would take $((bytes >> 20)) MiB, more than the $((most_bytes >> 20)) that a bundle may"
fi
tenths=$(((bytes * 10 + (1 << 19)) >> 20))
say "$file: ${tenths%?}.${tenths: -1} MiB, for glibc $(cat "$folder/glibc") or later"
without=$(grep -o 'without cuBLAS.*' "$stage/configured") || true
[[ -z $without ]] || say "the CUDA backend is built $without. It measures memwall's own kernels alone"
(cd "$folder" && find bin lib -type f -printf '%s %p\n' | sort -k 2)
