// Which card of configs/cards a GPU is, and what can be said of one that is none of them.
#pragma once

#include <optional>
#include <vector>

#include "card/card.h"
#include "cuda/runtime.h"

namespace memwall::cuda {

// 10^9 bytes/s that the memory's clock and width allow, two transfers a clock; 0 where the driver does not
// say.
double peak_GBps(const GpuProperties& gpu);

struct CardMatch {
  Card card;
  bool from_attributes = false;  // made of the device's attributes, not read from a card file
};

// The card whose name or alias is the GPU's, in its memory size, or nothing. The driver's names ("NVIDIA H100
// 80GB HBM3", "NVIDIA A100-PCIE-40GB") are compared without vendor and memory; a PCIe card is not taken for
// the SXM one unless their bandwidths agree, and no card for a variant with another name ("RTX 4090 D", "H100
// NVL") or another bandwidth.
std::optional<Card> known_card(const GpuProperties& gpu, const std::vector<Card>& cards);

// The peaks that the attributes of the device give, dense, at its highest clock. Nothing where its bandwidth
// or its architecture is not known.
std::optional<Card> card_of_attributes(const GpuProperties& gpu);

// The first of the two that there is.
std::optional<CardMatch> match_card(const GpuProperties& gpu, const std::vector<Card>& cards);

}  // namespace memwall::cuda
