#include "card/assumptions.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace memwall {
namespace {

constexpr const char* kAssumed = "assumed";

// Between the classes, with a spread that covers them.
const Achievable kDefault{.class_name = "default",
                          .provisional = true,
                          .bandwidth_share = 0.85,
                          .compute_share = 0.6,
                          .kernel_us = 10,
                          .spread = 0.3,
                          .source = "between the classes of the shipped cards"};

// FLOP/byte above every shipped card's ridge (16-bit 458, DGX Spark; f32 116, Strix Halo) and those of small
// cards with large tensor cores and slow memory. 8-bit units are twice as fast as 16-bit ones, 4-bit four
// times.
constexpr double kRidge16 = 1000;
constexpr double kRidge32 = 250;
// The middle of the shipped cards' 16-bit ridges, on which the expected speed rests instead.
constexpr double kUsualRidge16 = 200;

void set_peak(Card& card, ComputeType type, double tflops) {
  card.peaks[type] = {.tflops = tflops, .accumulate = "", .source = kAssumed};
}

std::string peak_text(const Card& card, ComputeType type) {
  return fmt::format("{} {:.4g} TFLOP/s", compute_type_name(type), card.peaks.at(type).tflops);
}

}  // namespace

const std::vector<Achievable>& achievable_classes() {
  static const std::vector<Achievable> classes = {
      {"hbm-datacenter", true, 0.87, 0.80, 13.0, 0.30, "as configs/cards/h100-sxm.yaml"},
      {"gddr-datacenter", true, 0.85, 0.50, 10.0, 0.20, "as configs/cards/l40s.yaml"},
      {"gddr-consumer", true, 0.90, 0.85, 8.0, 0.15, "as configs/cards/rtx-4090.yaml"},
      {"apple", true, 0.86, 0.65, 30.0, 0.15, "as configs/cards/m2-ultra.yaml"},
      {"amd-hbm", true, 0.70, 0.50, 12.0, 0.30, "as configs/cards/mi300x.yaml"},
      {"unified-memory", true, 0.85, 0.60, 10.0, 0.30, "as configs/cards/dgx-spark.yaml"},
  };
  return classes;
}

void complete_achievable(Card& card, const GivenAchievable& given, bool no_peak_given) {
  const std::vector<Achievable>& classes = achievable_classes();
  Achievable base = kDefault;
  if (given.class_name) {
    const auto known = std::find_if(classes.begin(), classes.end(),
                                    [&](const Achievable& a) { return a.class_name == *given.class_name; });
    if (known != classes.end()) base = *known;
  }
  std::vector<std::string> lacking;
  const auto take = [&](double& constant, const std::optional<double>& value, const char* name) {
    if (value) {
      constant = *value;
    } else {
      lacking.push_back(fmt::format("{} {}", name, constant));
    }
  };
  if (no_peak_given) base.compute_share *= kUsualRidge16 / kRidge16;
  take(base.bandwidth_share, given.bandwidth_share, "bandwidth_share");
  take(base.compute_share, given.compute_share, "compute_share");
  take(base.kernel_us, given.kernel_us, "kernel_us");
  take(base.spread, given.spread, "spread");
  const std::string from = base.class_name;
  if (given.class_name) base.class_name = *given.class_name;
  if (given.source) base.source = *given.source;
  base.provisional = !lacking.empty() || given.provisional.value_or(false);
  card.achievable = base;
  if (!lacking.empty()) {
    card.assumed.push_back(fmt::format("what kernels achieve is not given: {} ({} constants, provisional)",
                                       fmt::join(lacking, ", "),
                                       from == "default" ? "the default" : "class " + from + "'s"));
  }
}

void complete_peaks(Card& card) {
  using enum ComputeType;
  const auto tflops = [&](ComputeType type) {
    const auto it = card.peaks.find(type);
    return it == card.peaks.end() ? 0 : it->second.tflops;
  };
  if (card.peaks.empty()) {
    const double per_ridge = card.bytes_per_s() / 1e12;
    set_peak(card, f32, kRidge32 * per_ridge);
    for (const ComputeType type : {f16, bf16}) set_peak(card, type, kRidge16 * per_ridge);
    for (const ComputeType type : {f8, int8}) set_peak(card, type, 2 * kRidge16 * per_ridge);
    set_peak(card, f4, 4 * kRidge16 * per_ridge);
    card.assumed.push_back(
        fmt::format("no arithmetic peak is given: ridges above every shipped card's, {} FLOP/byte in 16 bits "
                    "({}) and {} in "
                    "f32, so that the ceiling stays one; the expected speed takes a usual ridge, {}",
                    kRidge16, peak_text(card, f16), kRidge32, kUsualRidge16));
    return;
  }
  if (tflops(f16) == 0) {
    struct Rule {
      double tflops;
      const char* text;
    };
    // bf16 units run f16 as fast; tf32 ones are half as fast as 16-bit ones, 8-bit ones twice.
    const std::array<Rule, 6> rules = {{{tflops(bf16), "as bf16"},
                                        {2 * tflops(tf32), "twice tf32"},
                                        {tflops(f8) / 2, "half of f8"},
                                        {tflops(int8) / 2, "half of int8"},
                                        {tflops(f4) / 4, "a quarter of f4"},
                                        {tflops(f32), "as f32, as where there are no 16-bit units"}}};
    const auto rule = std::find_if(rules.begin(), rules.end(), [](const Rule& r) { return r.tflops > 0; });
    set_peak(card, f16, rule->tflops);
    card.assumed.push_back(
        fmt::format("the f16 peak is not given: {} ({})", peak_text(card, f16), rule->text));
  }
  if (tflops(f32) == 0) {
    set_peak(card, f32, tflops(tf32) > 0 ? tflops(tf32) : tflops(f16));
    card.assumed.push_back(fmt::format("the f32 peak is not given: {} ({}, the most it can be)",
                                       peak_text(card, f32), tflops(tf32) > 0 ? "as tf32" : "as f16"));
  }
}

void note_capacity(Card& card) {
  if (card.capacity_GiB == 0)
    card.assumed.emplace_back("capacity_GiB is not given: whether it fits is unknown");
}

}  // namespace memwall
