// Formats as people write them: "Q8_0", "fp16", "awq", "4bit", "Q4_K_M". What a word names, what was taken
// where it says less than a format does, and what to write instead where it names none.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "format/format.h"

namespace memwall {

template <typename Named>
struct FormatWord {
  std::optional<Named> format;
  std::string taken =
      {};                 // why this one, where the word leaves it open; "" where it only spells it otherwise
  std::string hint = {};  // without a format: what the word is and what would be right; never empty then
};

// A weight format. Case, spaces, '-', '_' and '.' do not matter. A word of several formats gives the
// commonest and says so (`awq`: int4-g128-zp); a mix of formats (`Q4_K_M`), a size (`4.5bpw`) or an unknown
// word gives a hint with formats of its size.
FormatWord<Format> read_format_word(std::string_view word);

// A KV cache's format, likewise.
FormatWord<KvFormat> read_kv_format_word(std::string_view word);

}  // namespace memwall
