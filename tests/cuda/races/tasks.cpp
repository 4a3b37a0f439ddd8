// Small tasks over all kinds of work, formats and batches that have kernels of their own.
#include <fmt/format.h>

#include "tests/cuda/races/races.h"

namespace memwall::cuda {
namespace {

void add(std::vector<NamedTask>& tasks, const std::string& name, const Work& work, std::int64_t batch,
         std::int64_t context = 1, Phase phase = Phase::decode) {
  const char* at = phase == Phase::decode ? "decode" : "prefill";
  tasks.push_back({fmt::format("{}, {} of {} at {}", name, at, batch, context),
                   OpTask{.work = work, .workload = {.phase = phase, .batch = batch, .context = context}}});
}

void add_linears(std::vector<NamedTask>& tasks) {
  for (const char* name :
       {"f32", "f16", "bf16", "f8_e4m3", "f8_e4m3-b128", "q8_0", "q4_0", "int4-g64", "int4-g128-zp"}) {
    const auto format = find_format(name);
    if (!format) continue;
    const LinearWork linear{.out = 40, .in = 512, .format = *format};
    // One column, and the widths that small batches are computed in.
    for (const std::int64_t batch : {1, 2, 3, 5, 8, 16})
      add(tasks, fmt::format("linear {}", name), linear, batch);
    // So few rows that K is split, and a bias.
    add(tasks, fmt::format("long linear {}", name),
        LinearWork{.out = 3, .in = 8192, .format = *format, .bias = true, .bias_format = {FormatKind::f32}},
        1);
    add(tasks, fmt::format("experts {}", name), ExpertWork{.each = linear, .total = 6, .per_token = 2}, 3);
    add(tasks, fmt::format("embedding {}", name), EmbeddingWork{.rows = 50, .width = 512, .format = *format},
        3);
  }
  // Their x is quantised by one block, by two launches, and by rows.
  for (const char* name : {"f8_e4m3", "int8-c"}) {
    const LinearWork linear{.out = 48, .in = 512, .format = *find_format(name), .bias_format = {}};
    for (const std::int64_t batch : {3, 40}) add(tasks, fmt::format("narrow linear {}", name), linear, batch);
  }
  for (const FormatKind kind : {FormatKind::f32, FormatKind::bf16}) {
    for (const std::int64_t batch : {1, 5}) {
      add(tasks, "router", RouterWork{.linear = {.out = 48, .in = 256, .format = {kind}}, .per_token = 5},
          batch);
    }
  }
}

void add_caches(std::vector<NamedTask>& tasks) {
  for (const KvFormat kv : {KvFormat::bf16, KvFormat::f16, KvFormat::f8_e4m3}) {
    for (const std::int64_t context : {70, 900}) {
      for (const std::int64_t width : {64, 128}) {
        const AttentionWork attention{.heads = 8, .kv_heads = 2, .d_k = width, .d_v = width, .kv = kv};
        add(tasks, fmt::format("attention of {}", width), attention, 2, context);
      }
      add(tasks, "windowed attention",
          AttentionWork{.heads = 4, .kv_heads = 4, .d_k = 128, .d_v = 128, .window = 64, .kv = kv}, 1,
          context);
      add(tasks, "latent attention",
          LatentWork{.state = {.heads = 16, .rank = 512, .rope = 64, .d_nope = 128, .d_v = 128}, .kv = kv}, 1,
          context);
      add(tasks, "indexer", IndexerWork{.state = {.heads = 64, .width = 128}, .kv = kv}, 1, context);
    }
  }
}

void add_recurrences(std::vector<NamedTask>& tasks) {
  for (const std::int64_t bytes : {2, 4}) {
    const std::int64_t elements = 70 * 128;
    const auto recurrent = [&](const char* name, std::int64_t state_flops, std::int64_t weights) {
      const RecurrentWork work{.state = {.elements = elements,
                                         .element_bytes = bytes,
                                         .conv_elements = 3 * 96,
                                         .flops = state_flops * elements + 2 * 4 * 96},
                               .weight_bytes = weights};
      // On a card of 4 multiprocessors these differ in the loads a lane keeps in flight.
      for (const std::int64_t batch : {1, 9}) add(tasks, name, work, batch);
      add(tasks, name, work, 2, 3, Phase::prefill);
    };
    recurrent("decay", 5, 2 * (5 * 96 + 30));
    recurrent("delta", 7, 2 * (5 * 96 + 30));
    recurrent("selective", 7, 2 * (elements + 6 * 96));
  }
  for (const std::int64_t channels : {200, 37}) {
    add(tasks, "short convolution",
        RecurrentWork{.state = {.conv_elements = 2 * channels, .flops = 8 * channels},
                      .weight_bytes = 2 * 3 * channels},
        2);
  }
}

void add_elementwise(std::vector<NamedTask>& tasks) {
  using F = ElementwiseFunction;
  for (const F function : {F::rms_norm, F::layer_norm, F::rotary, F::activate, F::add, F::combine}) {
    ElementwiseWork work{.function = function, .width = 512, .weight_format = {FormatKind::bf16}};
    if (function == F::rms_norm || function == F::layer_norm) work.weights = 512;
    if (function == F::activate || function == F::add) work.inputs = 2;
    if (function == F::combine) work.inputs = 4;
    if (function == F::rotary) work.rows_per_token = 6;
    add(tasks, fmt::format("elementwise {}", static_cast<int>(function)), work, 3);
  }
}

// A linear with what may join it before and behind, and rotary with attention.
void add_fused(std::vector<NamedTask>& tasks) {
  using F = ElementwiseFunction;
  const ElementwiseWork rms{.function = F::rms_norm, .width = 512, .weights = 512, .weight_format = {}};
  const ElementwiseWork layer{.function = F::layer_norm, .width = 512, .weights = 1024, .weight_format = {}};
  const ElementwiseWork gate{.function = F::activate, .width = 40, .inputs = 2, .weight_format = {}};
  const ElementwiseWork residual{.function = F::add, .width = 40, .inputs = 2, .weight_format = {}};
  const ElementwiseWork rotary{.function = F::rotary, .width = 128, .rows_per_token = 6, .weight_format = {}};
  const AttentionWork attention{.heads = 4, .kv_heads = 2, .d_k = 128, .d_v = 128};
  const auto add_ops = [&](const std::string& name, const std::vector<Work>& works, std::int64_t batch,
                           std::int64_t context) {
    FusedTask task;
    for (const Work& work : works)
      task.ops.push_back({.work = work, .workload = {Phase::decode, batch, context}});
    tasks.push_back({fmt::format("fused {} of {}", name, batch), task});
  };
  for (const char* name : {"bf16", "f8_e4m3", "q4_0"}) {
    const LinearWork linear{.out = 40, .in = 512, .format = *find_format(name), .bias_format = {}};
    for (const std::int64_t batch : {1, 3, 8}) {
      add_ops(fmt::format("norm and three {}", name), {rms, linear, linear, linear}, batch, 1);
      add_ops(fmt::format("gated {}", name), {layer, linear, linear, gate}, batch, 1);
      add_ops(fmt::format("{} and a residual", name), {linear, residual}, batch, 1);
    }
  }
  for (const std::int64_t context : {70, 900})
    add_ops("rotary and attention", {rotary, attention}, 2, context);
}

}  // namespace

std::vector<NamedTask> race_tasks() {
  std::vector<NamedTask> tasks;
  for (const StreamPattern pattern : {StreamPattern::read, StreamPattern::copy, StreamPattern::scale,
                                      StreamPattern::add, StreamPattern::triad}) {
    for (const bool nontemporal : {false, true})
      tasks.push_back({fmt::format("stream {}", static_cast<int>(pattern)),
                       StreamTask{.pattern = pattern, .nontemporal = nontemporal, .bytes = 65536}});
  }
  for (const FormatKind kind : {FormatKind::f32, FormatKind::f16}) {
    tasks.push_back({"add", AddTask{.n = 64, .format = {kind}}});
    tasks.push_back({"matmul", MatmulTask{.n = 64, .format = {kind}}});
  }
  add_linears(tasks);
  add_caches(tasks);
  add_recurrences(tasks);
  add_elementwise(tasks);
  add_fused(tasks);
  return tasks;
}

}  // namespace memwall::cuda
