// Text of unknown origin (names in files, paths, arguments) as it may stand on a terminal or in a file.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace memwall {

// The text with what a terminal would act on, or a reader could not see, written out: control characters (C0,
// DEL, C1) as \x1b and \u0085, bidirectional marks and invisible characters (U+200B to U+200F, U+2028 to
// U+202E, U+2060 to U+206F, U+061C, U+FEFF, tags and the like) as \u202e, and bytes that are no UTF-8 as
// \xff. Nothing else changes; what is printable already stays as it is, so that escaping twice is escaping
// once.
std::string printable(std::string_view text);

// The same for text of several lines, whose breaks stay; with `colours`, the ANSI colours of report/table.h
// do, too.
std::string printable_lines(std::string_view text, bool colours = false);

// The same for a JSON document: within its texts, which is where such characters can stand, as \u202e, which
// reads as the character itself.
std::string printable_json(std::string_view document);

// For a message: printable, and after `most` bytes of it cut at a character, with "..." behind.
inline constexpr std::size_t kMostShown = 80;
std::string excerpt(std::string_view text, std::size_t most = kMostShown);

// True where printable would write something out.
bool has_unprintable(std::string_view text);

}  // namespace memwall
