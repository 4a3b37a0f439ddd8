// What the texts of one estimate and of a grid of them share.
#pragma once

#include <string>
#include <vector>

#include "report/figures.h"
#include "report/table.h"

namespace memwall {

// Whether uneven routing could read fewer weights than the expectation says.
bool routing_matters(const Step& step);

// "120 ms–1.9 s", of an estimate with a prompt.
std::string ttft_range_text(const Estimate& estimate);

// A row an estimate; there is one at least.
std::string estimate_grid_text(const std::vector<Estimate>& estimates, const Style& style);

}  // namespace memwall
