// What stands for what a card's file does not say. docs/card-format.md states the rules; each that was
// applied adds a sentence to Card::assumed.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "card/card.h"

namespace memwall {

// What an `achievable` mapping gave; the others follow the class, or the default of all classes.
struct GivenAchievable {
  std::optional<std::string> class_name;
  std::optional<bool> provisional;
  std::optional<double> bandwidth_share, compute_share, kernel_us, spread;
  std::optional<std::string> source;
};

// The constants of the classes that the shipped cards name ("hbm-datacenter"): those of configs/cards.
const std::vector<Achievable>& achievable_classes();

// The given constants, the class's where they lack, the default's where there is no class. Provisional unless
// all were given and say otherwise. Where no peak was given either, compute_share brings the generous ridges
// of complete_peaks down to a usual one.
void complete_achievable(Card& card, const GivenAchievable& given, bool no_peak_given);

// f32 and f16, which every format falls back on. From the peaks the card has; where it has none, from its
// bandwidth at a ridge that no shipped card passes, so that a ceiling does not come out low.
void complete_peaks(Card& card);

// Words for a capacity that is not known.
void note_capacity(Card& card);

}  // namespace memwall
