// A card: what its datasheet promises, and what good kernels get out of it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace memwall {

// The operand types arithmetic peaks are stated for.
enum class ComputeType : std::uint8_t { f32, tf32, f16, bf16, f8, int8, f4 };
std::string_view compute_type_name(ComputeType type);

struct PeakFigure {
  double tflops = 0;       // dense, 10^12 FLOP/s
  std::string accumulate;  // the accumulator's type, where the source says it
  std::string source;      // empty: the file names none; "assumed": one of Card::assumed
};

struct Interconnect {
  std::string name;
  double GBps = 0;  // both directions together, a card
};

// Hockney's model of a kernel's time, t = t0 + max(bytes / W_inf, FLOPs / P_inf), as shares of the peaks.
struct Achievable {
  std::string class_name;
  bool provisional = false;    // a class's constants, not a fit to this card
  double bandwidth_share = 1;  // W_inf / W
  double compute_share = 1;    // P_inf / P
  double kernel_us = 0;        // t0
  double spread = 0;           // likely relative error of the expected speed
  std::string source;
};

struct Card {
  std::string name;
  std::string title;
  std::vector<std::string> aliases;
  std::string vendor;
  std::string architecture;
  double bandwidth_GBps = 0;
  double capacity_GiB = 0;  // 0: unknown
  double l2_MiB = 0;        // 0: unknown
  // Kernels for it multiply what is stored in 8 bits and fewer as integers, activations quantised to 8 bits,
  // as a CPU's do: memwall's own for int4 groups, llama.cpp's for mxfp4 and a quantised KV cache too.
  bool quantises_activations = false;
  std::optional<Interconnect> interconnect;
  std::map<ComputeType, PeakFigure> peaks;
  Achievable achievable;
  std::vector<std::string> assumed;  // a sentence each: what the file does not say and what stands for it

  double bytes_per_s() const { return bandwidth_GBps * 1e9; }
};

// Reads a card file (docs/card-format.md): a name and a bandwidth at least. What else it lacks follows the
// rules of card/assumptions.h. Throws InputError with file, line and column.
Card load_card_yaml(const std::string& path);

// A shipped card's name or alias, however it is written ("NVIDIA GeForce RTX 4090", "rtx4090"), or a card
// YAML's path. Where the word leaves a choice, what was taken is added to `notes`. Throws InputError.
Card find_card(std::string_view word, std::vector<std::string>* notes = nullptr);

// Every shipped card, by name.
std::vector<Card> all_cards();

}  // namespace memwall
