#include "tests/cuda/tasks.h"

#include <fmt/format.h>

namespace memwall::cuda {
namespace {

Format format(const char* name) { return find_format(name).value(); }

struct Sizes {
  std::int64_t out, in;  // of a linear
  std::int64_t heads, kv_heads, width, context;
  std::int64_t experts, per_token;
  std::int64_t recurrent_heads;
  std::int64_t stream_bytes, square;
  std::vector<std::int64_t> rows;
};

Sizes sizes_of(TaskSize size) {
  if (size == TaskSize::small) return {24, 128, 4, 2, 64, 50, 4, 2, 1, 1 << 14, 24, {1, 3}};
  return {4096, 4096, 32, 8, 128, 3000, 64, 8, 24, 64 << 20, 1024, {1, 4, 16}};
}

void add_linears(const Sizes& s, std::vector<DeviceTask>& tasks) {
  for (const char* name : {"f32", "f16", "bf16", "f8_e4m3", "q8_0", "q4_0", "int4-g64", "int4-g128"}) {
    const LinearWork linear{.out = s.out, .in = s.in, .format = format(name)};
    for (const std::int64_t rows : s.rows)
      tasks.push_back({fmt::format("linear {} x{}", name, rows), OpTask{linear, {.batch = rows}}});
  }
  // The library's narrow products, whose x is quantised by one block, by two launches, and by rows.
  for (const char* name : {"f8_e4m3", "int8-c"}) {
    const LinearWork linear{.out = 2 * s.out, .in = s.in, .format = format(name)};
    for (const std::int64_t rows : {1, 129})
      tasks.push_back(
          {fmt::format("narrow linear {} x{}", name, rows), OpTask{linear, {.batch = rows}}, true});
  }
  for (const char* name : {"bf16", "q4_0"}) {
    const ExpertWork experts{.each = {.out = s.out / 4, .in = s.in, .format = format(name)},
                             .total = s.experts,
                             .per_token = s.per_token};
    for (const std::int64_t rows : s.rows) {
      tasks.push_back({fmt::format("experts {} x{}", name, rows), OpTask{experts, {.batch = rows}}});
      tasks.push_back({fmt::format("experts {} x{}, whole layers", name, rows),
                       OpTask{.work = experts, .workload = {.batch = rows}, .whole_layers = true}});
    }
  }
  const LinearWork router{.out = s.experts, .in = s.in, .format = format("bf16")};
  tasks.push_back({"router", OpTask{RouterWork{router, s.per_token}, {.batch = s.rows.back()}}});
}

void add_attention(const Sizes& s, std::vector<DeviceTask>& tasks) {
  const AttentionWork grouped{s.heads, s.kv_heads, s.width, s.width};
  for (const KvFormat kv : {KvFormat::f32, KvFormat::f16, KvFormat::bf16, KvFormat::f8_e4m3}) {
    AttentionWork work = grouped;
    work.kv = kv;
    tasks.push_back(
        {fmt::format("attention {}", kv_format_name(kv)), OpTask{work, {.batch = 2, .context = s.context}}});
    const LatentWork latent{{.heads = s.heads, .rank = 512, .rope = 64}, kv};
    if (kv == KvFormat::f16 || kv == KvFormat::bf16)
      tasks.push_back({fmt::format("latents {}", kv_format_name(kv)),
                       OpTask{latent, {.batch = 1, .context = s.context}}});
  }
  AttentionWork windowed = grouped;
  windowed.window = s.context / 2;
  tasks.push_back({"attention in a window", OpTask{windowed, {.batch = 1, .context = s.context}}});
  tasks.push_back({"indexer", OpTask{IndexerWork{{.heads = s.heads, .width = 128}, KvFormat::f8_e4m3},
                                     {.batch = 2, .context = s.context}}});
}

// A Mamba-2 of heads 64 x 128 and a gated delta net of heads 128 x 128, with convolutions of 4 taps.
void add_recurrences(const Sizes& s, std::vector<DeviceTask>& tasks) {
  const std::int64_t heads = s.recurrent_heads;
  const std::int64_t mamba = heads * 64 * 128;
  const std::int64_t channels = heads * 64 + 2 * 128;
  tasks.push_back({"mamba 2", OpTask{RecurrentWork{.state = {.elements = mamba,
                                                             .conv_elements = 3 * channels,
                                                             .flops = 5 * mamba + 2 * 4 * channels},
                                                   .weight_bytes = 2 * (5 * channels + 3 * heads)},
                                     {.batch = 2, .context = 1}}});
  const std::int64_t delta = heads * 128 * 128;
  const std::int64_t inputs = 3 * heads * 128;
  tasks.push_back({"delta net", OpTask{RecurrentWork{.state = {.elements = delta,
                                                               .conv_elements = 3 * inputs,
                                                               .flops = 7 * delta + 2 * 4 * inputs},
                                                     .weight_bytes = 2 * (4 * inputs + 2 * heads)},
                                       {.batch = 2, .context = 1}}});
}

void add_elementwise(const Sizes& s, std::vector<DeviceTask>& tasks) {
  using enum ElementwiseFunction;
  const std::int64_t width = s.in;
  for (const ElementwiseWork& work :
       {ElementwiseWork{.function = rms_norm, .width = width, .weights = width},
        ElementwiseWork{.function = layer_norm, .width = width, .weights = 2 * width},
        ElementwiseWork{.function = rotary, .width = s.width, .rows_per_token = s.heads},
        ElementwiseWork{.function = activate, .width = width, .inputs = 2},
        ElementwiseWork{.function = activate, .width = width, .activation = ActivationKind::gelu},
        ElementwiseWork{.function = add, .width = width, .inputs = 2},
        ElementwiseWork{.function = combine, .width = width, .inputs = s.per_token}}) {
    tasks.push_back(
        {fmt::format("elementwise {}", static_cast<int>(work.function)), OpTask{work, {.batch = 3}}});
  }
  for (const char* name : {"bf16", "q8_0"})
    tasks.push_back(
        {fmt::format("embedding {}", name),
         OpTask{EmbeddingWork{.rows = 500, .width = width, .format = format(name)}, {.batch = 4}}});
}

void add_probes(const Sizes& s, std::vector<DeviceTask>& tasks) {
  for (const StreamPattern pattern : {StreamPattern::read, StreamPattern::copy, StreamPattern::scale,
                                      StreamPattern::add, StreamPattern::triad}) {
    for (const bool passing : {false, true})
      tasks.push_back(
          {fmt::format("stream {} {}", static_cast<int>(pattern), passing ? "past the caches" : ""),
           StreamTask{pattern, passing, s.stream_bytes}});
  }
  for (const char* name : {"f32", "f16"}) {
    tasks.push_back({fmt::format("add {}", name), AddTask{s.square, format(name)}});
    tasks.push_back({fmt::format("matmul {}", name), MatmulTask{s.square, format(name)}});
  }
}

// What a layer of a decoder runs side by side or in turn.
void add_fused(const Sizes& s, std::vector<DeviceTask>& tasks) {
  using enum ElementwiseFunction;
  const Workload workload{.batch = s.rows.back(), .context = s.context};
  const OpTask norm{ElementwiseWork{.function = rms_norm, .width = s.in, .weights = s.in}, workload};
  const OpTask residual{ElementwiseWork{.function = add, .width = s.in, .inputs = 2}, workload};
  const OpTask linear{LinearWork{.out = s.out, .in = s.in, .format = format("bf16")}, workload};
  const OpTask activation{ElementwiseWork{.function = activate, .width = s.out, .inputs = 2}, workload};
  const OpTask turn{ElementwiseWork{.function = rotary, .width = s.width, .rows_per_token = s.heads},
                    workload};
  const OpTask attention{AttentionWork{s.heads, s.kv_heads, s.width, s.width}, workload};
  tasks.push_back({"norm and linears", FusedTask{{norm, linear, linear, linear}}, true});
  tasks.push_back({"gate, up and activation", FusedTask{{linear, linear, activation}}, true});
  tasks.push_back({"residual and norm", FusedTask{{residual, norm}}, true});
  tasks.push_back({"rotary and attention", FusedTask{{turn, attention}}, true});
}

}  // namespace

std::vector<DeviceTask> device_tasks(TaskSize size) {
  const Sizes sizes = sizes_of(size);
  std::vector<DeviceTask> tasks;
  add_linears(sizes, tasks);
  add_attention(sizes, tasks);
  add_recurrences(sizes, tasks);
  add_elementwise(sizes, tasks);
  add_probes(sizes, tasks);
  add_fused(sizes, tasks);
  return tasks;
}

}  // namespace memwall::cuda
