// What takes the place of adding a block's output to one residual stream: hyper-connections between several
// (DeepSeek-V4, GLM-5.3 Flash, Hunyuan 4, Qwen4) and attention over what earlier layers gave (Kimi K3).
#include <fmt/format.h>

#include "format/checked.h"
#include "load/gguf_layers.h"

namespace memwall {

void add_residual_mixing(GgufBlock& block, const std::string& part) {
  const std::string stem = fmt::format("hc_{}", part);
  const std::string name = fmt::format("{}_hc", part);
  block.linear(stem + "_fn", name + ".fn");
  block.parameter(stem + "_base", name + ".base");
  block.parameter(stem + "_scale", name + ".scale");
  // Qwen4's are of low rank, and normalised each by itself.
  block.norm(stem + "_norm", name + ".norm");
  for (const char* linear : {"down", "up", "inject"})
    block.linear(fmt::format("{}_{}", stem, linear), fmt::format("{}.{}", name, linear));
  // The product of Kimi K3's norm and query.
  block.parameter(part + "_res_score", "depth_attention_score");
}

void add_last_residual_mixing(GgufBlock& block) {
  block.linear("output_hc_fn", "hc_head.fn");
  block.parameter("output_hc_base", "hc_head.base");
  block.parameter("output_hc_scale", "hc_head.scale");
  block.norm("output_hc_norm", "hc_head.norm");
  block.linear("output_hc_down", "hc_head.down");
  block.linear("output_hc_up", "hc_head.up");
  block.parameter("output_res_score", "depth_attention_score");
}

}  // namespace memwall
