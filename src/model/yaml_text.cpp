#include "model/yaml_text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <string_view>

namespace memwall {
namespace {

bool is_letter(unsigned char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_digit(unsigned char c) { return c >= '0' && c <= '9'; }

// Bytes of the UTF-8 character that `text` begins with, 0 where it begins with none.
std::size_t character_bytes(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  const std::size_t length = first < 0x80                    ? 1
                             : first >= 0xc2 && first < 0xe0 ? 2
                             : first >= 0xe0 && first < 0xf0 ? 3
                             : first >= 0xf0 && first < 0xf5 ? 4
                                                             : 0;
  if (length == 0 || length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if (byte(i) < 0x80 || byte(i) > 0xbf) return 0;
  }
  if (length < 3) return length;
  // Overlong, surrogates, past U+10FFFF.
  const bool wrong = (first == 0xe0 && byte(1) < 0xa0) || (first == 0xed && byte(1) > 0x9f) ||
                     (first == 0xf0 && byte(1) < 0x90) || (first == 0xf4 && byte(1) > 0x8f);
  return wrong ? 0 : length;
}

// What a reader of model files refuses: C0 and C1 controls; and what yaml-cpp does not keep: U+FFFE, U+FEFF.
bool is_refused(std::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  if (character.size() == 1) return first < 0x20 || first == 0x7f;
  if (character.size() == 2) return first == 0xc2 && static_cast<unsigned char>(character[1]) < 0xa0;
  return character == "\xef\xbb\xbf" || character == "\xef\xbf\xbe";
}

// Words that some reader of YAML takes for no text.
bool is_word_of_yaml(const std::string& text) {
  constexpr std::array<std::string_view, 10> kWords = {"true", "false", "null", "yes", "no",
                                                       "on",   "off",   "y",    "n",   "nan"};
  std::string lower = text;
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return std::find(kWords.begin(), kWords.end(), lower) != kWords.end();
}

bool is_plain(const std::string& text) {
  const auto harmless = [](unsigned char c) {
    return is_letter(c) || is_digit(c) || c == '_' || c == '.' || c == '-' || c == '/' || c == ' ' ||
           c == '(' || c == ')';
  };
  return !text.empty() && is_letter(static_cast<unsigned char>(text.front())) && text.back() != ' ' &&
         std::all_of(text.begin(), text.end(), harmless) && !is_word_of_yaml(text);
}

}  // namespace

std::string yaml_scalar(const std::string& text) {
  if (is_plain(text)) return text;
  std::string quoted = "\"";
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t length = character_bytes(rest);
    const std::string_view character = rest.substr(0, std::max<std::size_t>(length, 1));
    rest.remove_prefix(character.size());
    if (length == 0 || is_refused(character)) {
      for (const char c : character) quoted += fmt::format("\\\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      if (character == "\"" || character == "\\") quoted += '\\';
      quoted += character;
    }
  }
  return quoted + "\"";
}

std::string yaml_key(const std::string& name) {
  constexpr std::size_t kMost = 200;  // bytes, each of which may become four
  if (name.size() <= kMost) return yaml_scalar(name);
  std::uint64_t hash = 0xcbf29ce484222325ULL;  // FNV-1a
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return yaml_scalar(fmt::format("{}-{:016x}", name.substr(0, kMost), hash));
}

}  // namespace memwall
