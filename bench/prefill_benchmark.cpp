// 512 rows by our GEMM and by the BLAS on our panels; `speed` is against OpenBLAS's sgemm on f32 weights.
#include <fmt/format.h>

#include <string>

#include "bench/paired.h"
#include "kernels/cpu/panel_layout.h"

int main(int argc, char** argv) {
  using namespace memwall;
  using namespace memwall::benchmarks;
  constexpr std::int64_t kOut = 4096;
  constexpr std::int64_t kIn = 4096;
  constexpr std::int64_t kRows = 512;
  return run_suite(argc, argv, [](Suite& suite) {
    suite.add({.name = "openblas sgemm f32",
               .place = [](Rig& rig) { return place_blas(kOut, kIn, kRows, rig.context, 2); }});
    for (const char* format : {"f32", "f16", "f8_e4m3", "q8_0", "q4_0"}) {
      const LinearWork work{.out = kOut, .in = kIn, .format = find_format(format).value()};
      for (const char* variant : {"gemm", "gemm int8", "blas"}) {
        if (variant == std::string("gemm int8") && !cpu::is_integer(work.format)) continue;
        suite.add(fmt::format("{} {}", variant, format), OpTask{work, {.batch = kRows}}, variant, false,
                  "openblas sgemm f32");
      }
    }
  });
}
