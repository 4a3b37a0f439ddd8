#include "report/measured.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace memwall {
namespace {

constexpr double kMostShare = 1.03;

// The part of an op's bytes that it reads: a memory may take writes beside its reads, so only the reads are
// held to the read bandwidth. A recurrent state is written as often as it is read.
double read_part(const Cost& cost) {
  const double cold = cost.weight_bytes + cost.kv_bytes() + cost.state_bytes;
  return cold > 0 ? 1 - cost.state_bytes / 2 / cold : 1;
}

void add_sampling(Json& json, const Measurement& m) {
  json["samples"] = m.seconds.n;
  json["stopped"] = std::string(stop_reason_name(m.stop));
  json["copies"] = m.copies;
}

Json interval(const std::optional<Interval>& ci, double factor) {
  if (!ci) return nullptr;
  return Json::array({number(ci->low * factor), number(ci->high * factor)});
}

Json measured_speed(double seconds, const Workload& workload, bool partial) {
  if (seconds <= 0)
    return {{"ms_per_step", nullptr},
            {"tokens_per_s", nullptr},
            {"tokens_per_s_per_user", nullptr},
            {"partial", true}};
  const Speed speed = speed_of(seconds, static_cast<double>(workload.rows()),
                               static_cast<double>(workload.batch), Bound::memory);
  Json json = {{"ms_per_step", number(speed.ms_per_step)},
               {"tokens_per_s", number(speed.tokens_per_s)},
               {"tokens_per_s_per_user", number(speed.tokens_per_s_per_user)}};
  if (partial) json["partial"] = true;
  return json;
}

Json stream_figures(const StreamFigure& stream) {
  Json json;
  json["pattern"] = stream_name(stream.task.pattern);
  if (stream.task.pattern == StreamPattern::read) {
    json["stores"] = nullptr;
  } else {
    json["stores"] = stream.task.nontemporal ? "nontemporal" : "ordinary";
  }
  json["GBps"] = number(stream.GBps);
  json["traffic_GBps"] = number(stream.traffic_GBps());
  json["traffic_of_read_bandwidth"] =
      stream.traffic_of_read > 0 ? number(stream.traffic_of_read) : Json(nullptr);
  return json;
}

}  // namespace

Json device_figures(const DeviceFigures& d) {
  Json json;
  json["name"] = d.info.name;
  json["kind"] = d.info.kind;
  json["threads"] = d.info.threads;
  json["cpus"] = d.info.cpus;
  json["cores"] = d.info.cores;
  json["pinned"] = d.info.pinned;
  json["numa"] = {{"policy", d.info.numa == NumaPolicy::local ? "local" : "interleave"},
                  {"nodes", d.info.numa_nodes}};
  json["instruction_set"] = d.info.instruction_set;
  json["driver"] = nullptr;
  json["blas"] = d.info.blas;
  json["read_GBps"] = d.read_GBps > 0 ? number(d.read_GBps) : Json(nullptr);
  json["read_variant"] = d.read_variant;
  json["copy_GBps"] = d.copy_GBps > 0 ? number(d.copy_GBps) : Json(nullptr);
  json["triad_GBps"] = d.triad_GBps > 0 ? number(d.triad_GBps) : Json(nullptr);
  json["streams"] = Json::array();
  for (const StreamFigure& stream : d.streams) json["streams"].push_back(stream_figures(stream));
  json["peak_GBps"] = d.peak_GBps > 0 ? number(d.peak_GBps) : Json(nullptr);
  json["peak_GFLOPs"] = d.peak_GFLOPs > 0 ? number(d.peak_GFLOPs) : Json(nullptr);
  json["ridge"] = d.peak_GFLOPs > 0 && d.read_GBps > 0 ? number(d.ridge()) : Json(nullptr);
  json["huge_page_share"] = number(d.huge_page_share);
  json["l1d_bytes"] = d.info.l1d_bytes;
  json["l2_bytes"] = d.info.l2_bytes;
  json["last_level_bytes"] = d.info.last_level_bytes;
  return json;
}

Json baseline_figures(const Baseline& b, const DeviceFigures& device) {
  Json json;
  json["kernel"] = b.kernel;
  json["n"] = b.n;
  json["format"] = format_name(b.format);
  json["ms"] = number(b.seconds() * 1e3);
  json["bytes"] = number(b.bytes());
  json["flops"] = number(b.flops());
  json["intensity"] = number(b.intensity());
  json["GBps"] = number(b.bytes() / b.seconds() / 1e9);
  json["TFLOPs"] = number(b.flops() / b.seconds() / 1e12);
  json["of_peak_bandwidth"] =
      b.in_cache.empty() ? number(b.bytes() / b.seconds() / 1e9 / device.peak_GBps) : Json(nullptr);
  json["of_peak_flops"] = number(b.flops() / b.seconds() / 1e9 / device.peak_GFLOPs);
  json["in_cache"] = b.in_cache.empty() ? Json(nullptr) : Json(b.in_cache);
  add_sampling(json, b.measurement);
  return json;
}

Json baselines_figures(const BaselineFigures& baselines, const DeviceFigures& device, double ridge) {
  Json json = Json::object();
  for (const Baseline& b : baselines.pairs) {
    if (!json.contains(b.kernel)) json[b.kernel] = baseline_figures(b, device);
  }
  Json all = Json::array();
  for (const Baseline& b : baselines.pairs) all.push_back(baseline_figures(b, device));
  Json sweep = Json::array();
  for (const Baseline& b : baselines.sweep) {
    Json row = baseline_figures(b, device);
    row["bound"] = sweep_bound(b, ridge);
    sweep.push_back(std::move(row));
  }
  json["all"] = std::move(all);
  json["sweep"] = std::move(sweep);
  return json;
}

const char* sweep_bound(const Baseline& b, double ridge) {
  if (b.intensity() >= ridge) return "compute";
  return b.in_cache.empty() ? "memory" : "cache";
}

std::optional<double> slowdown(const BaselineFigures& baselines, Format format) {
  const auto find = [&](const char* kernel) {
    return std::find_if(baselines.pairs.begin(), baselines.pairs.end(),
                        [&](const Baseline& b) { return b.kernel == kernel && b.format == format; });
  };
  const auto add = find("add");
  const auto matmul = find("matmul");
  if (add == baselines.pairs.end() || matmul == baselines.pairs.end()) return std::nullopt;
  return matmul->seconds() / add->seconds();
}

Json measured_op_figures(const MeasuredOp& measured) {
  const bool predicted = measured.prediction.ceiling_s > 0;
  Json json = op_figures(measured.op, measured.cost, predicted ? &measured.prediction : nullptr);
  json.erase("expected_us");
  if (!measured.measurement) {
    json["not_measured"] = true;
    return json;
  }
  const Measurement& m = *measured.measurement;
  const double count = static_cast<double>(measured.op.count());
  json["variant"] = m.variant;
  json["variants"] = Json::array();
  for (const VariantFigure& v : m.variants)
    json["variants"].push_back({{"name", v.name}, {"us", number(v.seconds * 1e6)}});
  if (m.touched > 0) json["experts"]["measured_touched"] = number(m.touched);
  json["measured_us"] = number(m.seconds.median * count * 1e6);
  json["ci95_us"] = interval(m.seconds.ci95, count * 1e6);
  // Ops on activations run from the cache: their bytes say nothing of the memory.
  json["GBps"] = m.bytes > 0 ? number(m.bytes / m.seconds.median / 1e9) : Json(nullptr);
  json["GFLOPs"] = number(m.flops / m.seconds.median / 1e9);
  json["of_read_bandwidth"] = m.of_read_bandwidth ? number(m.of_read_bandwidth->median) : Json(nullptr);
  json["of_read_bandwidth_ci95"] =
      m.of_read_bandwidth ? interval(m.of_read_bandwidth->ci95, 1) : Json(nullptr);
  json["padding_bytes"] = number(m.padding * count);
  json["huge_page_share"] = m.huge_page_share ? number(*m.huge_page_share) : Json(nullptr);
  json["checked_outputs"] = m.check.outputs;
  add_sampling(json, m);
  return json;
}

Json whole_step_figures(const WholeStep& whole, const Workload& workload) {
  Json json = measured_speed(whole.seconds.median, workload, whole.partial);
  json["ci95_ms"] = interval(whole.seconds.ci95, 1e3);
  json["fastest_ms"] = number(whole.fastest * 1e3);
  json["bytes"] = number(whole.bytes);
  json["GBps"] = number(whole.bytes / whole.seconds.median / 1e9);
  json["of_read_bandwidth"] =
      whole.of_read_bandwidth ? number(whole.of_read_bandwidth->median) : Json(nullptr);
  json["of_read_bandwidth_ci95"] =
      whole.of_read_bandwidth ? interval(whole.of_read_bandwidth->ci95, 1) : Json(nullptr);
  json["read_GBps"] = number(whole.read_rate / 1e9);
  json["parts_read_GBps"] = whole.parts_read_rate > 0 ? number(whole.parts_read_rate / 1e9) : Json(nullptr);
  json["cold"] = whole.cold;
  json["layers"] = whole.layers;
  json["layers_held"] = whole.holding.layers_held;
  json["all_experts_held"] = whole.holding.all_experts;
  json["memory_bytes"] = whole.holding.bytes;
  json["samples"] = whole.seconds.n;
  json["stopped"] = std::string(stop_reason_name(whole.stop));
  json["steps_per_sample"] = whole.steps_per_sample;
  json["launches"] = whole.launches();
  json["barriers"] = whole.barriers();
  json["barrier_us"] = number(whole.barrier_seconds * 1e6);
  json["sum_of_parts_ms"] = number(whole.alone_seconds() * 1e3);
  const WholeStep::Difference difference = whole.difference();
  json["difference_ms"] = {{"total", number(difference.total() * 1e3)},
                           {"memory_ops", number(difference.memory_ops * 1e3)},
                           {"small_ops", number(difference.small_ops * 1e3)},
                           {"rest", number(difference.rest * 1e3)}};
  json["breakdown"] = Json::array();
  for (const StepKind& kind : whole.kinds) {
    json["breakdown"].push_back({{"kind", std::string(op_kind_name(kind.kind))},
                                 {"launches", kind.launches},
                                 {"bytes", number(kind.bytes)},
                                 {"ms", number(kind.seconds * 1e3)},
                                 {"alone_ms", number(kind.alone_seconds * 1e3)}});
  }
  return json;
}

Json measured_step_figures(const MeasuredStep& step) {
  Json json;
  json["batch"] = step.workload.batch;
  json["context"] = step.workload.context;
  json["predicted"] = step.predicted.ops.empty() ? Json(nullptr) : speed_figures(step.predicted.ceiling);
  json["measured"] = measured_speed(step.measured_seconds(), step.workload, step.partial());
  if (step.whole) json["measured"]["step"] = whole_step_figures(*step.whole, step.workload);
  json["ops"] = Json::array();
  for (const MeasuredOp& op : step.ops) json["ops"].push_back(measured_op_figures(op));
  return json;
}

std::vector<std::string> impossible_figures(const std::vector<MeasuredStep>& steps) {
  std::vector<std::string> found;
  // A probe reads alone: of what an op moves, only the part it reads is held against it.
  const auto look_at = [&](const std::string& what, std::int64_t batch, const std::optional<Summary>& share,
                           double read) {
    if (!share || !share->ci95 || share->ci95->low * read <= kMostShare) return;
    found.push_back(
        fmt::format("{} at batch {} moved its bytes at {:.0f} % ({:.0f}–{:.0f}) of the read bandwidth: "
                    "that cannot be; its operands sit in a cache or the probe was disturbed",
                    what, batch, 100 * share->median, 100 * share->ci95->low, 100 * share->ci95->high));
  };
  for (const MeasuredStep& step : steps) {
    for (const MeasuredOp& op : step.ops) {
      if (op.measurement)
        look_at(op.op.name, step.workload.batch, op.measurement->of_read_bandwidth, read_part(op.cost));
    }
    if (step.whole && step.whole->cold)
      look_at("the whole step", step.workload.batch, step.whole->of_read_bandwidth, 1);
  }
  return found;
}

std::vector<std::string> huge_page_warnings(const DeviceFigures& device,
                                            const std::vector<MeasuredStep>& steps) {
  if (device.info.kind == "cuda") return {};  // huge pages are the CPU's
  constexpr double kLeastShare = 0.5;
  const auto refused = [](const std::string& what, double share) {
    return std::vector<std::string>{
        fmt::format("only {:.0f} % of {} lies on huge pages, which costs bandwidth; "
                    "/sys/kernel/mm/transparent_hugepage/enabled must say always or madvise",
                    100 * share, what)};
  };
  if (device.read_GBps > 0 && device.huge_page_share < kLeastShare)
    return refused("the read probe's buffer", device.huge_page_share);
  for (const MeasuredStep& step : steps) {
    for (const MeasuredOp& op : step.ops) {
      if (!op.measurement || !op.measurement->huge_page_share) continue;
      if (*op.measurement->huge_page_share < kLeastShare)
        return refused("what " + op.op.name + " reads", *op.measurement->huge_page_share);
    }
  }
  return {};
}

}  // namespace memwall
