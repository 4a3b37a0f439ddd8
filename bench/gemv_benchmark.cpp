// GEMV in every format beside OpenBLAS's sgemv.
#include "bench/paired.h"

int main(int argc, char** argv) {
  using namespace memwall;
  using namespace memwall::benchmarks;
  constexpr std::int64_t kIn = 4096;
  return run_suite(argc, argv, [](Suite& suite) {
    const std::int64_t out = large_linear("f32", kIn).out;
    suite.add({.name = "openblas sgemv f32",
               .place = [out](Rig& rig) { return place_blas(out, kIn, 1, rig.context, 1); }});
    for (const char* format : {"f32", "f16", "bf16", "f8_e4m3", "q8_0", "q4_0", "int4-g128"}) {
      suite.add(std::string("gemv ") + format, OpTask{large_linear(format, kIn), {.batch = 1}}, "dot");
    }
  });
}
