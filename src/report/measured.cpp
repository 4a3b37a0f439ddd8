#include "report/measured.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "bench/unstable.h"

namespace memwall {
namespace {

void add_disturbance(Json& json, const Disturbance& d, const std::string& because) {
  json["disturbance"] = {{"discarded", d.discarded},
                         {"kept", d.kept},
                         {"others", number(d.others)},
                         {"elsewhere", number(d.elsewhere)},
                         {"steal", number(d.steal)}};
  if (!because.empty()) json["unstable_because"] = because;
}

void add_sampling(Json& json, const Measurement& m) {
  json["samples"] = m.seconds.n;
  json["stopped"] = std::string(stop_reason_name(m.stop));
  json["copies"] = m.copies;
  add_disturbance(json, m.disturbance, unstable_because(m));
}

// One launch's time of each way to run it.
Json variants_figures(const Measurement& m) {
  Json variants = Json::array();
  for (const VariantFigure& v : m.variants) {
    variants.push_back(
        {{"name", v.name}, {"us", std::isfinite(v.seconds) ? number(v.seconds * 1e6) : Json(nullptr)}});
    if (!v.works()) variants.back()["failed"] = v.failed;
  }
  return variants;
}

// A figure that nobody told is null, never 0.
Json known(double value) { return value > 0 ? number(value) : Json(nullptr); }
Json known(std::int64_t value) { return value > 0 ? Json(value) : Json(nullptr); }

Json peaks_figures(const DeviceFigures& d) {
  Json json = Json::object();
  for (const auto& [type, peak] : d.peaks) {
    json[std::string(compute_type_name(type))] = {
        {"GFLOPs", known(peak.GFLOPs)},
        {"median_GFLOPs", known(peak.median_GFLOPs)},
        {"ridge", d.best_read_GBps > 0 ? number(peak.GFLOPs / d.best_read_GBps) : Json(nullptr)},
        {"by", peak.by}};
  }
  return json;
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
  json["traffic_GBps"] = number(stream.traffic_GBps);
  json["traffic_of_read_bandwidth"] =
      stream.traffic_of_read > 0 ? number(stream.traffic_of_read) : Json(nullptr);
  if (!stream.unstable.empty()) json["unstable_because"] = stream.unstable;
  return json;
}

Json gpu_figures(const GpuFacts& gpu, const DeviceFigures& d) {
  Json json;
  json["multiprocessors"] = gpu.multiprocessors;
  json["pci_id"] = gpu.pci_id;
  json["cuda"] = gpu.cuda;
  json["ecc"] = gpu.ecc;
  json["card"] = gpu.card.empty() ? Json(nullptr) : Json(gpu.card);
  json["card_from"] =
      gpu.card.empty() ? Json(nullptr) : Json(gpu.card_is_datasheet ? "datasheet" : "attributes");
  json["card_GBps"] = gpu.datasheet_GBps > 0 ? number(gpu.datasheet_GBps) : Json(nullptr);
  json["read_of_card"] =
      gpu.datasheet_GBps > 0 && d.read_GBps > 0 ? number(d.read_GBps / gpu.datasheet_GBps) : Json(nullptr);
  json["clocks_unknown"] = gpu.clocks_unknown.empty() ? Json(nullptr) : Json(gpu.clocks_unknown);
  return json;
}

// Why the sampling of its ops stopped, each reason once.
Json stop_reasons(const MeasuredStep& step) {
  Json reasons = Json::array();
  for (const MeasuredOp& op : step.ops) {
    if (!op.measurement) continue;
    const std::string reason(stop_reason_name(op.measurement->stop));
    if (std::find(reasons.begin(), reasons.end(), reason) == reasons.end()) reasons.push_back(reason);
  }
  return reasons;
}

}  // namespace

Json device_figures(const DeviceFigures& d) {
  Json json;
  json["name"] = d.info.name;
  json["kind"] = d.info.kind;
  json["threads"] = d.info.threads;
  json["cpus"] = d.info.cpus;
  json["cores"] = d.info.cores > 0 ? Json(d.info.cores) : Json(nullptr);
  json["pinned"] = d.info.pinned;
  json["numa"] = {{"policy", d.info.numa == NumaPolicy::local ? "local" : "interleave"},
                  {"nodes", d.info.numa_nodes}};
  json["instruction_set"] = d.info.instruction_set;
  json["driver"] = d.info.gpu ? Json(d.info.gpu->driver) : Json(nullptr);
  json["blas"] = d.info.blas;
  json["gpu"] = d.info.gpu ? gpu_figures(*d.info.gpu, d) : Json(nullptr);
  json["read_GBps"] = known(d.read_GBps);
  json["best_read_GBps"] = known(d.best_read_GBps);
  json["best_traffic_GBps"] = known(d.best_traffic_GBps);
  json["read_variant"] = d.read_variant.empty() ? Json(nullptr) : Json(d.read_variant);
  json["copy_GBps"] = known(d.copy_GBps);
  json["triad_GBps"] = known(d.triad_GBps);
  json["streams"] = Json::array();
  for (const StreamFigure& stream : d.streams) json["streams"].push_back(stream_figures(stream));
  json["peak_GBps"] = known(d.peak_GBps);
  json["peak_GFLOPs"] = known(d.peak_GFLOPs);
  json["peaks"] = peaks_figures(d);
  json["peaks_GFLOPs"] = Json::object();
  for (const auto& [type, peak] : d.peaks)
    json["peaks_GFLOPs"][std::string(compute_type_name(type))] = known(peak.GFLOPs);
  json["ridge"] = d.peak_GFLOPs > 0 && d.best_read_GBps > 0 ? number(d.ridge()) : Json(nullptr);
  json["launch"] = nullptr;
  if (d.launch_fit) {
    json["launch"] = {{"t0_us", number(d.launch_fit->seconds_a_launch * 1e6)},
                      {"GBps", number(d.launch_fit->bytes_per_s / 1e9)}};
  }
  json["huge_page_share"] = d.read_GBps > 0 && !d.info.gpu ? number(d.huge_page_share) : Json(nullptr);
  json["l1d_bytes"] = known(d.info.l1d_bytes);
  json["l2_bytes"] = known(d.info.l2_bytes);
  json["last_level_bytes"] = known(d.info.last_level_bytes);
  return json;
}

Json baseline_figures(const Baseline& b, const DeviceFigures& device, double ridge) {
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
  const std::optional<Summary>& of_read = b.measurement.of_read_bandwidth;
  json["of_read_bandwidth"] = of_read ? number(of_read->median) : Json(nullptr);
  json["of_read_bandwidth_ci95"] = of_read ? interval(of_read->ci95, 1) : Json(nullptr);
  json["of_peak_flops"] = number(b.flops() / b.seconds() / 1e9 / baseline_peak_GFLOPs(b, device));
  const std::string bound = baseline_bound(b, device, ridge);
  json["bound"] = bound.empty() ? Json(nullptr) : Json(bound);
  json["in_cache"] = b.in_cache.empty() ? Json(nullptr) : Json(b.in_cache);
  json["variant"] = b.measurement.variant;
  json["variants"] = variants_figures(b.measurement);
  add_sampling(json, b.measurement);
  json["flags"] = flags_of(b);
  return json;
}

Json baselines_figures(const BaselineFigures& baselines, const DeviceFigures& device, double ridge) {
  Json json = Json::object();
  const auto figures = [&](const Baseline& b) { return baseline_figures(b, device, ridge); };
  for (const Baseline& b : baselines.pairs) {
    if (!json.contains(b.kernel)) json[b.kernel] = figures(b);
  }
  Json all = Json::array();
  for (const Baseline& b : baselines.pairs) all.push_back(figures(b));
  Json sweep = Json::array();
  for (const Baseline& b : baselines.sweep) sweep.push_back(figures(b));
  json["all"] = std::move(all);
  json["sweep"] = std::move(sweep);
  return json;
}

Json measured_op_figures(const MeasuredOp& measured, const DeviceFigures& device) {
  const bool predicted = measured.prediction.ceiling_s > 0 || measured.prediction.peak.flops_per_s > 0;
  Json json = op_figures(measured.op, measured.cost, predicted ? &measured.prediction : nullptr);
  json.erase("expected_us");
  // What neither reads memory nor computes has no bound; 0 would be one.
  if (predicted) json["ceiling_us"] = known(measured.prediction.ceiling_s * 1e6);
  if (!measured.measurement) {
    json["not_measured"] = true;
    if (!measured.failed.empty()) json["why"] = measured.failed;  // else there is no kernel, or the run ended
    json["flags"] = flags_of(measured, device);
    return json;
  }
  const Measurement& m = *measured.measurement;
  const double count = static_cast<double>(measured.op.count());
  json["variant"] = m.variant;
  json["variants"] = variants_figures(m);
  if (m.touched > 0) json["experts"]["measured_touched"] = number(m.touched);
  if (!m.first_drawn.empty()) json["experts"]["first_drawn"] = m.first_drawn;
  const std::optional<Bound> bound = measured_bound(measured, device);
  json["measured_bound"] = bound ? Json(std::string(bound_name(*bound))) : Json(nullptr);
  json["measured_us"] = number(m.seconds.median * count * 1e6);
  json["ci95_us"] = interval(m.seconds.ci95, count * 1e6);
  // Ops on activations run from the cache: their bytes say nothing of the memory.
  json["GBps"] = m.bytes > 0 ? number(m.bytes / m.seconds.median / 1e9) : Json(nullptr);
  json["GFLOPs"] = number(m.flops / m.seconds.median / 1e9);
  json["of_read_bandwidth"] = m.of_read_bandwidth ? number(m.of_read_bandwidth->median) : Json(nullptr);
  json["of_read_bandwidth_ci95"] =
      m.of_read_bandwidth ? interval(m.of_read_bandwidth->ci95, 1) : Json(nullptr);
  json["read_GBps"] = known(m.read_rate / 1e9);
  json["of_same_size_read"] = m.of_same_size_read ? number(m.of_same_size_read->median) : Json(nullptr);
  json["of_same_size_read_ci95"] =
      m.of_same_size_read ? interval(m.of_same_size_read->ci95, 1) : Json(nullptr);
  json["alone_us"] = m.alone_seconds ? number(m.alone_seconds->median * count * 1e6) : Json(nullptr);
  json["clock_MHz"] = m.clock_MHz ? number(*m.clock_MHz) : Json(nullptr);
  json["slowed"] = {{"samples", m.slowed_samples}, {"by", m.slowed_by}};
  json["padding_bytes"] = number(m.padding * count);
  json["huge_page_share"] = m.huge_page_share ? number(*m.huge_page_share) : Json(nullptr);
  json["checked_outputs"] = m.check.outputs;
  add_sampling(json, m);
  json["flags"] = flags_of(measured, device);
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
  json["read_GBps"] = known(whole.read_rate / 1e9);
  json["parts_read_GBps"] = known(whole.parts_read_rate / 1e9);
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
  json["barrier_us"] = known(whole.barrier_seconds * 1e6);
  json["sum_of_parts_ms"] = known(whole.alone_seconds() * 1e3);
  const WholeStep::Difference difference = whole.difference();
  json["difference_ms"] = {{"total", number(difference.total() * 1e3)},
                           {"memory_ops", number(difference.memory_ops * 1e3)},
                           {"small_ops", number(difference.small_ops * 1e3)},
                           {"rest", number(difference.rest * 1e3)}};
  json["fusions"] = Json::array();
  for (const StepFusion& fusion : whole.fusions) {
    json["fusions"].push_back({{"ops", fusion.ops},
                               {"launches", fusion.launches},
                               {"us", number(fusion.seconds * 1e6)},
                               {"parts_us", number(fusion.parts_seconds * 1e6)}});
  }
  json["breakdown"] = Json::array();
  for (const StepKind& kind : whole.kinds) {
    json["breakdown"].push_back({{"kind", std::string(op_kind_name(kind.kind))},
                                 {"launches", kind.launches},
                                 {"bytes", number(kind.bytes)},
                                 {"ms", known(kind.seconds * 1e3)},
                                 {"alone_ms", known(kind.alone_seconds * 1e3)}});
  }
  add_disturbance(json, whole.disturbance, unstable_because(whole));
  json["flags"] = flags_of(whole);
  return json;
}

Json measured_step_figures(const MeasuredStep& step, const DeviceFigures& device) {
  Json json;
  json["batch"] = step.workload.batch;
  json["context"] = step.workload.context;
  if (!step.weights.empty()) {
    json["weights"] = step.weights;
    json["head_weights"] = step.head_weights;
    json["kv"] = step.kv;
  }
  json["predicted"] = nullptr;
  if (!step.predicted.ops.empty()) {
    json["predicted"] = speed_figures(step.predicted.ceiling);
    json["predicted"]["peak"] = std::string(compute_type_name(step.predicted.peak.type));
    json["predicted"]["ridge"] = number(step.predicted.ridge);
    json["predicted"]["is_bound"] = predicts_bound(step, device) && !passes_bound(step, device);
  }
  json["measured"] = measured_speed(step.measured_seconds(), step.workload, step.partial());
  if (step.workload.phase == Phase::decode) {
    const std::optional<double> share = share_of_read(step);
    json["measured"]["of_read_bandwidth"] = share ? number(*share) : Json(nullptr);
  }
  if (step.whole) json["measured"]["step"] = whole_step_figures(*step.whole, step.workload);
  if (!step.whole_failed.empty()) json["measured"]["step_failed"] = step.whole_failed;
  json["stopped"] = stop_reasons(step);
  if (std::string why = unstable_because(step); !why.empty()) json["unstable_because"] = std::move(why);
  const auto drift = memory_drift(step);
  json["memory_drift_GBps"] =
      drift ? Json({number(drift->low / 1e9), number(drift->high / 1e9)}) : Json(nullptr);
  json["flags"] = flags_of(step, device);
  json["ops"] = Json::array();
  for (const MeasuredOp& op : step.ops) json["ops"].push_back(measured_op_figures(op, device));
  return json;
}

}  // namespace memwall
