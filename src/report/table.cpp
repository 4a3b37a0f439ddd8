#include "report/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "format/units.h"
#include "input/printable.h"

namespace memwall {

std::string Style::apply(Tone tone, std::string_view text) const {
  constexpr std::array<std::string_view, 6> kCodes = {"", "1", "2", "32", "33", "31"};
  const std::string_view code = kCodes[static_cast<std::size_t>(tone)];
  if (!colour || code.empty() || text.empty()) return std::string(text);
  return fmt::format("\x1b[{}m{}\x1b[0m", code, text);
}

std::size_t display_width(std::string_view utf8) {
  return static_cast<std::size_t>(std::count_if(
      utf8.begin(), utf8.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

void Table::row(std::vector<Cell> cells) {
  cells.resize(columns_.size(), Cell(""));
  for (Cell& cell : cells) {
    if (has_unprintable(cell.text)) cell.text = printable(cell.text);
  }
  rows_.push_back(std::move(cells));
}

void Table::rule() { rules_.push_back(rows_.size()); }

namespace {

constexpr std::size_t kMostColumns = 100;

// "….gate_proj": the end of a name says more than its beginning.
std::string elided(const std::string& text, std::size_t width) {
  if (display_width(text) <= width || text.size() != display_width(text)) return text;
  return "…" + text.substr(text.size() - (width - 1));
}

}  // namespace

std::string wrapped(const std::string& text) {
  std::string out;
  std::size_t column = 0;
  std::size_t start = 0;
  while (start < text.size()) {
    const std::size_t end = std::min(text.find(' ', start), text.size());
    const std::size_t width = display_width(text.substr(start, end - start));
    if (column > 0 && column + 1 + width > kMostColumns) {
      out += "\n  ";
      column = 2;
    } else if (column > 0) {
      out += ' ';
      ++column;
    }
    out += text.substr(start, end - start);
    column += width;
    start = end + 1;
  }
  return out + "\n";
}

std::string Table::render(const Style& style) const {
  std::vector<std::size_t> widths;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    std::size_t width = display_width(columns_[c].title);
    for (const auto& row : rows_) width = std::max(width, display_width(row[c].text));
    widths.push_back(width);
  }
  // A table too wide for 100 columns gives up one of the two blanks between its columns, then the beginning
  // of its longest names.
  std::size_t text_width = 0;
  for (const std::size_t width : widths) text_width += width;
  const std::size_t gap = text_width + 2 * (widths.size() - 1) > kMostColumns ? 1 : 2;
  const std::size_t needed = text_width + gap * (widths.size() - 1);
  constexpr std::size_t kLeastName = 9;
  if (needed > kMostColumns && widths.front() > kLeastName) {
    const std::size_t cut = std::min(needed - kMostColumns, widths.front() - kLeastName);
    widths.front() -= cut;
    text_width -= cut;
  }
  const auto line = [&](const std::vector<Cell>& cells) {
    std::string text;
    std::size_t owed = 0;  // blanks before the next text, so that none trail
    for (std::size_t c = 0; c < cells.size(); ++c) {
      const std::string shown = elided(cells[c].text, widths[c]);
      const std::size_t pad = widths[c] - std::min(widths[c], display_width(shown));
      if (c > 0) owed += gap;
      if (columns_[c].align == Align::right) owed += pad;
      if (!shown.empty()) {
        text += std::string(owed, ' ') + style.apply(cells[c].tone, shown);
        owed = 0;
      }
      if (columns_[c].align == Align::left) owed += pad;
    }
    return text + "\n";
  };
  std::vector<Cell> titles;
  for (const Column& column : columns_) titles.emplace_back(column.title, Tone::bold);
  const std::size_t total = text_width + gap * (widths.size() - 1);
  std::string bar;
  for (std::size_t i = 0; i < total; ++i) bar += "─";
  bar = style.apply(Tone::dim, bar) + "\n";

  std::string text = line(titles) + bar;
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    if (std::find(rules_.begin(), rules_.end(), r) != rules_.end()) text += bar;
    text += line(rows_[r]);
  }
  return text;
}

std::string significant(double value, int digits) {
  if (value == 0) return "0";
  if (!std::isfinite(value)) return "–";
  // The magnitude after rounding: 9.9996 to four digits is 10.00.
  const std::string scientific = fmt::format("{:.{}e}", value, digits - 1);
  const int magnitude = std::stoi(scientific.substr(scientific.find('e') + 1));
  const int decimals = std::max(0, digits - 1 - magnitude);
  return fmt::format("{:.{}f}", value, decimals);
}

namespace {

std::string with_prefix(double value, std::string_view unit, double base,
                        std::array<std::string_view, 6> prefixes) {
  std::size_t i = 0;
  while (i + 1 < prefixes.size() && std::abs(value) >= 0.99995 * base) {
    value /= base;
    ++i;
  }
  const std::string digits =
      i == 0 && std::floor(value) == value ? fmt::format("{:.0f}", value) : significant(value, 4);
  return fmt::format("{} {}{}", digits, prefixes[i], unit);
}

}  // namespace

std::string human_bytes(double bytes) { return with_prefix(bytes, "B", 1000, {"", "k", "M", "G", "T", "P"}); }

std::string human_binary(double bytes) {
  return with_prefix(bytes, "B", 1024, {"", "Ki", "Mi", "Gi", "Ti", "Pi"});
}

std::string human_flops(double flops) {
  return with_prefix(flops, "FLOP", 1000, {"", "k", "M", "G", "T", "P"});
}

std::string human_count(double count) { return with_prefix(count, "", 1000, {"", "k", "M", "B", "T", "P"}); }

std::string human_gib(double bytes) { return fmt::format("{} GiB", significant(bytes / kGiB, 3)); }

std::string human_time(double seconds) {
  if (seconds < 0.9995e-6) return significant(seconds * 1e9, 4) + " ns";
  if (seconds < 0.9995e-3) return significant(seconds * 1e6, 4) + " us";
  if (seconds < 0.9995) return significant(seconds * 1e3, 4) + " ms";
  return significant(seconds, 4) + " s";
}

std::string thousands(double whole) {
  std::string digits = fmt::format("{:.0f}", std::abs(whole));
  for (std::ptrdiff_t i = static_cast<std::ptrdiff_t>(digits.size()) - 3; i > 0; i -= 3) {
    digits.insert(static_cast<std::size_t>(i), ",");
  }
  return whole < 0 ? "-" + digits : digits;
}

}  // namespace memwall
