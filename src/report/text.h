// What the commands that need no device print for people: one function a command.
#pragma once

#include <string>
#include <vector>

#include "report/figures.h"
#include "report/table.h"

namespace memwall {

std::string inspect_text(const Model& model, const std::vector<Op>& ops, const Step& step,
                         const Style& style);
// Two models, figure by figure, and the second over the first.
std::string inspect_pair_text(const Model& a, const Model& b, std::int64_t context, const Style& style);
std::string estimate_text(const std::vector<Estimate>& estimates, bool with_ops, const Style& style);
std::string models_text(const std::vector<Model>& models, const Style& style);
std::string cards_text(const std::vector<Card>& cards, const Style& style);

// An op's shape as people write it: "4096 x 14336", "32/8 heads x 128".
std::string shape_text(const Op& op);

// Its weights' or cache's format; empty where there is none.
std::string format_text(const Op& op);

// "memory" and its colour.
Table::Cell bound_cell(Bound bound);

}  // namespace memwall
