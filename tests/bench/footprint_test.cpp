// What the CPU's operands take against what footprint() counts: --memory rests on it.
#include <gtest/gtest.h>
#include <malloc.h>

#include <fstream>
#include <sstream>
#include <string>

#include "bench/device.h"
#include "bench/sampler.h"

namespace memwall {
namespace {

// A field of /proc/self/status in bytes, 0 where there is none.
double process_memory(const std::string& field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    std::istringstream words(line);
    std::string key;
    double kib = 0;
    if (words >> key >> kib && key == field + ":") return kib * 1024;
  }
  return 0;
}

// Has VmHWM start anew from what is resident now.
bool reset_peak() {
  std::ofstream file("/proc/self/clear_refs");
  file << "5" << std::flush;
  return file.good() && process_memory("VmHWM") > 0;
}

class FootprintTest : public ::testing::Test {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "a sanitizer's own memory is counted as well";
#endif
    if (!reset_peak()) GTEST_SKIP() << "this system does not tell the peak of a process's memory";
  }

  // Placing, checking and launching take no more than is counted, but for what a heap needs by itself.
  static void expect_counted(const Task& task, std::int64_t copies) {
    constexpr double kHeap = 4 << 20;
    const std::unique_ptr<Device> device = make_cpu_device();
    const double counted = static_cast<double>(placed_bytes(device->footprint(task), copies));
    ASSERT_GT(counted, 8 * kHeap) << "too small to tell";
    malloc_trim(0);
    ASSERT_TRUE(reset_peak());
    const double before = process_memory("VmRSS");
    {
      const auto operands = device->place(task, copies, 1);
      for (std::size_t v = 0; v < device->variants(task).size(); ++v) {
        EXPECT_TRUE(operands->check(v).passed());
        operands->launch(v, 1);
      }
    }
    EXPECT_LE(process_memory("VmHWM") - before, 1.02 * counted + kHeap) << counted << " counted";
  }
};

Task in_prefill(const Work& work, std::int64_t prompt = 4096) {
  return OpTask{work, {.phase = Phase::prefill, .batch = 1, .context = prompt}};
}

TEST_F(FootprintTest, ElementwiseOps) {
  for (const ElementwiseFunction function : {ElementwiseFunction::rms_norm, ElementwiseFunction::rotary,
                                             ElementwiseFunction::add, ElementwiseFunction::combine}) {
    SCOPED_TRACE(static_cast<int>(function));
    const bool pairs = function == ElementwiseFunction::add || function == ElementwiseFunction::combine;
    expect_counted(in_prefill(ElementwiseWork{.function = function, .width = 2048, .inputs = pairs ? 2 : 1}),
                   1);
  }
}

TEST_F(FootprintTest, AnEmbeddingsRowsAndTheTokensDrawn) {
  expect_counted(
      OpTask{EmbeddingWork{.rows = 16384, .width = 256, .format = *find_format("f16")}, {.batch = 100'000}},
      1);
}

TEST_F(FootprintTest, LinearsInDecodeAndPrefill) {
  for (const char* name : {"f16", "q4_0"}) {
    SCOPED_TRACE(name);
    const LinearWork work{.out = 1024, .in = 1024, .format = *find_format(name)};
    expect_counted(OpTask{work, {.batch = 2}}, 100);
    expect_counted(in_prefill(work), 1);
  }
}

TEST_F(FootprintTest, Attention) {
  const AttentionWork work{.heads = 32, .kv_heads = 8, .d_k = 64, .d_v = 64, .kv = KvFormat::f16};
  expect_counted(OpTask{work, {.batch = 2, .context = 8192}}, 4);
  expect_counted(in_prefill(work, 2048), 1);
}

}  // namespace
}  // namespace memwall
