#include "input/names.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "input/suggest.h"

namespace memwall {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Bytes of other alphabets count as letters.
bool is_letter(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) != 0 || static_cast<unsigned char>(c) >= 0x80;
}

bool is_number(const NamePart& part) { return is_digit(part.text.front()); }

// A word by itself is left out whole; of "nvidiageforcertx" what comes before "rtx" is.
void remove_ignored(std::string& word, const std::vector<std::string>& ignored) {
  for (bool again = true; again && !word.empty();) {
    again = false;
    for (const std::string& other : ignored) {
      if (word.compare(0, other.size(), other) != 0) continue;
      word.erase(0, other.size());
      again = true;
    }
  }
}

// "q4_k_m", "iq2_xxs", "ud-q4_k_xl", "q8_0".
bool is_ggml_word(std::string_view word) {
  if (word.size() >= 3 && word.substr(0, 3) == "ud-") word.remove_prefix(3);
  if (!word.empty() && word.front() == 'i') word.remove_prefix(1);
  if (word.size() < 2 || (word[0] != 'q' && word.substr(0, 2) != "tq") || word.size() > 8) return false;
  return is_digit(word[word[0] == 't' ? 2 : 1]);
}

// "4bit", "4.0bpw", "w4a16".
bool is_size_word(std::string_view word) {
  std::size_t i = 0;
  if (word.size() > 3 && word[0] == 'w' && is_digit(word[1])) {
    i = word.find('a');
    return i != std::string_view::npos && i + 1 < word.size() && is_digit(word[i + 1]);
  }
  while (i < word.size() && (is_digit(word[i]) || word[i] == '.')) ++i;
  const std::string_view unit = word.substr(i);
  return i > 0 && (unit == "bit" || unit == "bits" || unit == "bpw");
}

bool is_date(std::string_view word) {
  return word.size() == 4 && std::all_of(word.begin(), word.end(), is_digit);
}

constexpr std::array<std::string_view, 18> kRoles = {
    "instruct", "it",  "chat", "hf",      "base",    "pt",   "latest",  "inst",       "thinking",
    "gguf",     "mlx", "text", "unsloth", "dynamic", "vllm", "preview", "pretrained", "sft"};
constexpr std::array<std::string_view, 26> kFormats = {
    "awq",  "gptq",      "fp8",       "fp16",   "f16",   "bf16",  "fp32",      "f32",    "int4",
    "int8", "nf4",       "fp4",       "nvfp4",  "mxfp4", "mxfp8", "bnb",       "exl2",   "exl3",
    "hqq",  "quantized", "autoround", "marlin", "qat",   "w8a8",  "gptqmodel", "torchao"};

template <typename Words>
bool is_in(const Words& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// "hbm3", "gddr6x", "lpddr5x".
bool is_memory_type(std::string_view word) {
  return word.rfind("hbm", 0) == 0 || word.rfind("gddr", 0) == 0 || word.rfind("lpddr", 0) == 0 ||
         word == "vram";
}

// "80gb", "96gib".
bool is_memory_size(std::string_view word) {
  const std::size_t digits = word.find_first_not_of("0123456789");
  if (digits == 0 || digits == std::string_view::npos) return false;
  const std::string_view unit = word.substr(digits);
  return unit == "gb" || unit == "gib" || unit == "g";
}

}  // namespace

bool NameParts::equals(const NameParts& other) const {
  return parts.size() == other.parts.size() &&
         std::equal(parts.begin(), parts.end(), other.parts.begin(),
                    [](const NamePart& a, const NamePart& b) { return a.text == b.text; });
}

bool NameParts::begins(const NameParts& other) const {
  if (parts.empty() || parts.size() >= other.parts.size()) return false;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].text != other.parts[i].text) return false;
  }
  const NamePart& last = other.parts[parts.size() - 1];
  constexpr std::size_t kFamily = 3;  // letters of a family's name before its number: "qwen3"
  return !last.joined || (!is_number(last) && last.text.size() >= kFamily);
}

std::string NameParts::compact() const {
  std::string text;
  for (const NamePart& part : parts) {
    for (const char c : part.text) {
      if (c != '.') text += c;
    }
  }
  return text;
}

NameParts name_parts(std::string_view name, const std::vector<std::string>& ignored) {
  NameParts result;
  const std::string text = lower_case(name);
  bool separated = true;
  for (std::size_t i = 0; i < text.size();) {
    const bool digits = is_digit(text[i]);
    if (!digits && !is_letter(text[i])) {
      separated = true;
      ++i;
      continue;
    }
    std::string word;
    while (i < text.size() && (digits ? is_digit(text[i]) : is_letter(text[i]))) {
      word += text[i++];
      const bool point =
          digits && i + 1 < text.size() && (text[i] == '.' || text[i] == '_') && is_digit(text[i + 1]);
      if (point && word.find('.') == std::string::npos) {
        word += '.';
        ++i;
      }
    }
    if (!digits) remove_ignored(word, ignored);
    if (word.empty()) continue;
    if (!separated && !result.parts.empty()) result.parts.back().joined = true;
    result.parts.push_back({std::move(word)});
    separated = false;
  }
  return result;
}

Shortened without_last_ending(std::string_view name) {
  const std::string text = lower_case(name);
  std::size_t cut = text.find_last_of("-: /");
  if (cut == std::string::npos || cut == 0) return {std::string(name)};
  // "ud-q4_k_xl" and "bnb-4bit" are two words, the second of which is found first.
  const std::string_view word = std::string_view(text).substr(cut + 1);
  const bool format = is_ggml_word(word) || is_size_word(word) || is_in(kFormats, word) || word == "ud";
  if (!format && !is_in(kRoles, word) && !is_date(word)) return {std::string(name)};
  return {std::string(name.substr(0, cut)), format, true};
}

std::string without_memory(std::string_view name, bool size) {
  std::string kept;
  const std::string text = lower_case(name);
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t end = std::min(text.find_first_of(" -_", i), text.size());
    const std::string_view word = std::string_view(text).substr(i, end - i);
    if (!word.empty() && !is_memory_type(word) && !(size && is_memory_size(word))) {
      if (!kept.empty()) kept += '-';
      kept += word;
    }
    i = end + 1;
  }
  return kept;
}

}  // namespace memwall
