#include "cuda/card_match.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <string_view>

#include "format/units.h"
#include "input/suggest.h"

namespace memwall::cuda {
namespace {

// A card's name in parts: "NVIDIA A100-PCIE-40GB" is the model {"a100"}, on PCIe.
struct NameParts {
  std::vector<std::string> model;
  bool pcie = false;
  bool sxm = false;
};

bool all_digits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// "80gb", "hbm3", "hbm2e": memory, which its size in bytes tells better.
bool is_memory(std::string_view word) {
  if (word.rfind("hbm", 0) == 0) return true;
  return word.size() > 2 && word.substr(word.size() - 2) == "gb" &&
         all_digits(word.substr(0, word.size() - 2));
}

NameParts parts_of(std::string_view name) {
  NameParts parts;
  std::string word;
  const auto end_word = [&] {
    if (word.empty() || word == "nvidia" || word == "tesla" || word == "geforce" || is_memory(word)) {
    } else if (word == "pcie") {
      parts.pcie = true;
    } else if (word.rfind("sxm", 0) == 0) {
      parts.sxm = true;
    } else {
      parts.model.push_back(word);
    }
    word.clear();
  };
  for (const char c : lower_case(name)) {
    if (c == ' ' || c == '-' || c == '_') {
      end_word();
    } else {
      word += c;
    }
  }
  end_word();
  return parts;
}

// What the driver reports is the datasheet's size less what ECC and the firmware keep (an L4 22.5 of 24 GiB,
// a T4 14.7 of 16), or the datasheet counts 10^9 (an H200's 141).
bool same_size(const GpuProperties& gpu, const Card& card) {
  const double share = static_cast<double>(gpu.total_bytes) / kGiB / card.capacity_GiB;
  return share > 0.88 && share < 1.05;
}

// An H200's clock gives 2.4 % more than its datasheet; an A100 80GB on PCIe has 5 % less than the SXM card.
constexpr double kSameBandwidth = 0.035;

// FMAs a clock and a multiprocessor. f32: CUDA C++ Programming Guide 13.0, "Throughput of Native Arithmetic
// Instructions". f16: dense, by the tensor cores with f32 accumulation, from the white papers' peaks over
// multiprocessors and clock (T4 65 TFLOP/s, A100 312, A10 125, L40S 362, H100 989, B200 2250, RTX PRO 6000
// Blackwell 504).
struct Rates {
  int major;
  int minor;  // -1: any
  const char* architecture;
  int f32;
  int f16;
  bool bf16;  // and tf32
  bool f8;
};
constexpr std::array kRates = {
    Rates{7, 5, "Turing", 64, 512, false, false},      Rates{8, 0, "Ampere", 64, 1024, true, false},
    Rates{8, 6, "Ampere", 128, 512, true, false},      Rates{8, 7, "Ampere", 128, 512, true, false},
    Rates{8, 9, "Ada Lovelace", 128, 512, true, true}, Rates{9, 0, "Hopper", 128, 2048, true, true},
    Rates{10, -1, "Blackwell", 128, 4096, true, true}, Rates{12, -1, "Blackwell", 128, 512, true, true},
};

const Rates* rates_of(const ArchLimits& arch) {
  for (const Rates& rates : kRates) {
    if (rates.major == arch.major && (rates.minor < 0 || rates.minor == arch.minor)) return &rates;
  }
  return nullptr;
}

// GeForce cards since Ampere accumulate f16, bf16 and f8 in f32 at half the rate (white papers of GA102,
// AD102 and RTX Blackwell); int8 is not halved.
bool half_rate(const GpuProperties& gpu) {
  return gpu.arch.major >= 8 && lower_case(gpu.name).find("geforce") != std::string::npos;
}

// The provisional constants of the shipped cards of its class: configs/cards/{h100-sxm,l40s,rtx-4090}.yaml.
Achievable achievable_of(const GpuProperties& gpu) {
  constexpr int kNarrowestHbm = 1024;  // bits
  Achievable a;
  a.provisional = true;
  a.source = "the class's constants";
  if (gpu.memory_bus_bits >= kNarrowestHbm) {
    a.class_name = "hbm-datacenter";
    a.bandwidth_share = 0.87;
    a.compute_share = 0.80;
    a.kernel_us = 13;
    a.spread = 0.30;
  } else if (lower_case(gpu.name).find("geforce") != std::string::npos) {
    a.class_name = "gddr-consumer";
    a.bandwidth_share = 0.90;
    a.compute_share = 0.85;
    a.kernel_us = 8;
    a.spread = 0.15;
  } else {
    a.class_name = "gddr-datacenter";
    a.bandwidth_share = 0.85;
    a.compute_share = 0.50;
    a.kernel_us = 10;
    a.spread = 0.20;
  }
  return a;
}

}  // namespace

double peak_GBps(const GpuProperties& gpu) {
  return 2.0 * gpu.memory_clock_kHz * 1e3 * gpu.memory_bus_bits / 8 / 1e9;
}

std::optional<Card> known_card(const GpuProperties& gpu, const std::vector<Card>& cards) {
  const NameParts name = parts_of(gpu.name);
  if (name.model.empty()) return std::nullopt;
  const double bandwidth = peak_GBps(gpu);
  for (const Card& card : cards) {
    if (card.vendor != "NVIDIA" || !same_size(gpu, card)) continue;
    if (bandwidth > 0 && std::abs(bandwidth / card.bandwidth_GBps - 1) > kSameBandwidth) continue;
    std::vector<std::string> words = card.aliases;
    words.push_back(card.name);
    words.push_back(card.title);
    bool same_model = false;
    NameParts form;
    for (const std::string& word : words) {
      const NameParts parts = parts_of(word);
      same_model = same_model || parts.model == name.model;
      form.pcie = form.pcie || parts.pcie;
      form.sxm = form.sxm || parts.sxm;
    }
    // "NVIDIA H100 80GB HBM3" is the SXM card: PCIe ones say so.
    const bool same_form = name.pcie == form.pcie || (name.pcie && bandwidth > 0);
    if (same_model && same_form) return card;
  }
  return std::nullopt;
}

std::optional<Card> card_of_attributes(const GpuProperties& gpu) {
  const Rates* rates = rates_of(gpu.arch);
  const double bandwidth = peak_GBps(gpu);
  if (rates == nullptr || bandwidth <= 0 || gpu.sm_clock_kHz <= 0) return std::nullopt;
  Card card;
  card.name = fmt::format("sm_{}{}", gpu.arch.major, gpu.arch.minor);
  card.title = gpu.name;
  card.vendor = "NVIDIA";
  card.architecture = rates->architecture;
  card.bandwidth_GBps = bandwidth;
  card.capacity_GiB = static_cast<double>(gpu.total_bytes) / kGiB;
  card.l2_MiB = static_cast<double>(gpu.l2_bytes) / kMiB;
  const auto tflops = [&](double fmas) {
    return 2 * fmas * gpu.multiprocessors * gpu.sm_clock_kHz * 1e3 / 1e12;
  };
  const auto set = [&](ComputeType type, double fmas, const char* accumulate) {
    card.peaks[type] = {.tflops = tflops(fmas), .accumulate = accumulate, .source = "device attributes"};
  };
  const double f16 = half_rate(gpu) ? rates->f16 / 2.0 : rates->f16;
  set(ComputeType::f32, rates->f32, "f32");
  set(ComputeType::f16, f16, "f32");
  set(ComputeType::int8, 2.0 * rates->f16, "int32");
  if (rates->bf16) {
    set(ComputeType::bf16, f16, "f32");
    set(ComputeType::tf32, f16 / 2, "f32");
  }
  if (rates->f8) set(ComputeType::f8, 2 * f16, "f32");
  // GeForce's fp4 is not halved (RTX Blackwell white paper: 1676 TFLOP/s dense on an RTX 5090).
  constexpr int kBlackwell = 10;
  if (rates->major >= kBlackwell) set(ComputeType::f4, 4.0 * rates->f16, "f32");
  card.achievable = achievable_of(gpu);
  return card;
}

std::optional<CardMatch> match_card(const GpuProperties& gpu, const std::vector<Card>& cards) {
  if (auto card = known_card(gpu, cards)) return CardMatch{std::move(*card), false};
  if (auto card = card_of_attributes(gpu)) return CardMatch{std::move(*card), true};
  return std::nullopt;
}

}  // namespace memwall::cuda
