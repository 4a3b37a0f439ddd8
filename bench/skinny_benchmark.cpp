// One to 16 columns beside OpenBLAS's sgemm; `speed` is against one column, so 1 / speed is the time it
// takes.
#include <fmt/format.h>

#include "bench/paired.h"

int main(int argc, char** argv) {
  using namespace memwall;
  using namespace memwall::benchmarks;
  static constexpr std::int64_t kIn = 4096;
  constexpr std::int64_t kColumns[] = {1, 2, 4, 8, 16};
  return run_suite(argc, argv, [&](Suite& suite) {
    for (const char* format : {"f16", "q8_0", "q4_0"}) {
      for (const std::int64_t columns : kColumns) {
        suite.add(fmt::format("{} x{}", format, columns),
                  OpTask{large_linear(format, kIn), {.batch = columns}}, "dot", true,
                  columns == 1 ? "" : fmt::format("{} x1", format));
      }
    }
    const std::int64_t out = large_linear("f32", kIn).out;
    for (const std::int64_t columns : kColumns) {
      suite.add({.name = fmt::format("openblas f32 x{}", columns),
                 .place = [out, columns](Rig& rig) { return place_blas(out, kIn, columns, rig.context, 1); },
                 .beside = columns == 1 ? "" : "openblas f32 x1"});
    }
  });
}
