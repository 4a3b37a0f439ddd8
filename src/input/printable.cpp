#include "input/printable.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

namespace memwall {
namespace {

// A character of UTF-8 and the bytes it takes; no bytes where there is none (overlong forms, surrogates, cut
// ends).
struct Character {
  std::uint32_t point = 0;
  std::size_t bytes = 0;
};

Character character_at(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(at);
  if (first < 0x80) return {first, 1};
  const std::size_t bytes = first >= 0xF0 && first < 0xF5   ? 4
                            : first >= 0xE0 && first < 0xF0 ? 3
                            : first >= 0xC2 && first < 0xE0 ? 2
                                                            : 0;
  if (bytes == 0 || text.size() - at < bytes) return {};
  std::uint32_t point = first & (0xFFU >> (bytes + 1));
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(at + i) & 0xC0) != 0x80) return {};
    point = point << 6 | (byte(at + i) & 0x3FU);
  }
  const bool overlong = (bytes == 3 && point < 0x800) || (bytes == 4 && point < 0x10000);
  if (overlong || (point >= 0xD800 && point < 0xE000) || point > 0x10FFFF) return {};
  return {point, bytes};
}

bool is_shown(std::uint32_t point) {
  if (point < 0x20 || (point >= 0x7F && point < 0xA0)) return false;
  if ((point >= 0x200B && point <= 0x200F) || (point >= 0x2028 && point <= 0x202E) ||
      (point >= 0x2060 && point <= 0x206F))
    return false;
  if (point >= 0xE0000 && point <= 0xE007F) return false;  // tags
  return point != 0x061C && point != 0xFEFF && point != 0x00AD && point != 0x180E;
}

enum class Kept : std::uint8_t { none, lines, lines_and_colours };

// Bytes of a colour at `at`, as Style writes them: "\x1b[0m" to "\x1b[33m".
std::size_t colour_at(std::string_view text, std::size_t at) {
  if (text.substr(at, 2) != "\x1b[") return 0;
  std::size_t end = at + 2;
  while (end < text.size() && text[end] >= '0' && text[end] <= '9') ++end;
  const std::size_t digits = end - at - 2;
  return digits > 0 && digits <= 2 && end < text.size() && text[end] == 'm' ? end + 1 - at : 0;
}

std::string escaped(std::string_view text, Kept kept) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const Character c = character_at(text, i);
    if (c.bytes == 0) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[i]));
      ++i;
      continue;
    }
    std::size_t bytes = c.bytes;
    const std::size_t colour = kept == Kept::lines_and_colours ? colour_at(text, i) : 0;
    if (is_shown(c.point) || (kept != Kept::none && c.point == '\n') || colour > 0) {
      bytes = std::max(bytes, colour);
      out += text.substr(i, bytes);
    } else {
      out += c.point < 0x80 ? fmt::format("\\x{:02x}", c.point) : fmt::format("\\u{:04x}", c.point);
    }
    i += bytes;
  }
  return out;
}

}  // namespace

std::string printable(std::string_view text) { return escaped(text, Kept::none); }

std::string printable_lines(std::string_view text, bool colours) {
  return escaped(text, colours ? Kept::lines_and_colours : Kept::lines);
}

std::string printable_json(std::string_view document) {
  std::string out;
  out.reserve(document.size());
  for (std::size_t i = 0; i < document.size();) {
    const Character c = character_at(document, i);
    const std::size_t bytes = std::max<std::size_t>(c.bytes, 1);
    if (c.bytes == 0 || c.point < 0x20 || is_shown(c.point)) {
      out += document.substr(i, bytes);  // controls below 0x20 are the document's own line breaks
    } else if (c.point < 0x10000) {
      out += fmt::format("\\u{:04x}", c.point);
    } else {
      out +=
          fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + ((c.point - 0x10000) >> 10), 0xDC00 + (c.point & 0x3FF));
    }
    i += bytes;
  }
  return out;
}

std::string excerpt(std::string_view text, std::size_t most) {
  std::string shown;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t bytes = character_at(text, i).bytes;
    const std::size_t length = bytes == 0 ? 1 : bytes;
    const std::string next = escaped(text.substr(i, length), Kept::none);
    if (shown.size() + next.size() > most) return shown + "...";
    shown += next;
    i += length;
  }
  return shown;
}

bool has_unprintable(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const Character c = character_at(text, i);
    if (c.bytes == 0 || !is_shown(c.point)) return true;
    i += c.bytes;
  }
  return false;
}

}  // namespace memwall
