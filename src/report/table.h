// Aligned text tables for a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace memwall {

enum class Tone { plain, bold, dim, good, warn, bad };

// How text is dressed: with ANSI colours on a terminal, plainly elsewhere.
struct Style {
  bool colour = false;
  std::string apply(Tone tone, std::string_view text) const;
};

enum class Align { left, right };

class Table {
 public:
  struct Column {
    std::string title;
    Align align = Align::right;
  };
  struct Cell {
    std::string text;
    Tone tone = Tone::plain;
    Cell(std::string t, Tone n = Tone::plain)
        : text(std::move(t)), tone(n) {}  // NOLINT: cells are mostly text
    Cell(const char* t) : text(t) {}      // NOLINT
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  void row(std::vector<Cell> cells);
  void rule();  // a line across, before the next row
  // Two blanks between columns, no trailing blanks, every line ended by \n.
  std::string render(const Style& style) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<Cell>> rows_;
  std::vector<std::size_t> rules_;
};

// A line of words, broken at 100 columns, the further lines indented.
std::string wrapped(const std::string& text);

// Columns a text takes on a terminal: its code points (the project prints none that are wide).
std::size_t display_width(std::string_view utf8);

// Three or four significant digits with a decimal prefix: "15.01 GB", "131.1 kB", "512 B".
std::string human_bytes(double bytes);
std::string human_gib(double bytes);                // "15.0 GiB", binary
std::string human_binary(double bytes);             // "14.96 GiB", "27.00 MiB", "512 B"
std::string human_flops(double flops);              // "15.0 GFLOP"
std::string human_time(double seconds);             // "3.155 ms", "12.4 us"
std::string significant(double value, int digits);  // "316.95", "1.013", never in exponents
std::string human_count(double count);              // "8.030 B", "671.0 B": thousands, millions, billions
std::string thousands(double whole);                // "8,030,261,248"

}  // namespace memwall
