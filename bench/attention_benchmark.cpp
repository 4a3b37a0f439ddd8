// Attention of a decode step over a context of 8192 tokens.
#include <fmt/format.h>

#include "bench/paired.h"

int main(int argc, char** argv) {
  using namespace memwall;
  using namespace memwall::benchmarks;
  const Workload workload{.phase = Phase::decode, .batch = 1, .context = 8192};
  return run_suite(argc, argv, [&](Suite& suite) {
    const auto add = [&](const std::string& name, const Work& work) {
      suite.add(name, OpTask{work, workload}, "");
    };
    for (const KvFormat kv : {KvFormat::f16, KvFormat::int8}) {
      for (const std::int64_t width : {128, 64}) {
        add(fmt::format("GQA 32/8 d{} {}", width, kv_format_name(kv)),
            AttentionWork{.heads = 32, .kv_heads = 8, .d_k = width, .d_v = width, .kv = kv});
      }
    }
    add("MQA 32/1 d128 f16",
        AttentionWork{.heads = 32, .kv_heads = 1, .d_k = 128, .d_v = 128, .kv = KvFormat::f16});
    // DeepSeek-V2-Lite's and DeepSeek-V3's latents.
    for (const std::int64_t heads : {16, 128}) {
      add(fmt::format("MLA {} heads f16", heads),
          LatentWork{{.heads = heads, .rank = 512, .rope = 64, .d_nope = 128, .d_v = 128}, KvFormat::f16});
    }
  });
}
