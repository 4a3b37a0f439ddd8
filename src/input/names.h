// Names as people write them, compared by their parts: "Llama 3.1 8B", "llama3.1:8b" and "llama-3_1-8B" are
// one.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace memwall {

// A run of letters or of digits. A point or an underscore between two digits is a decimal point: "3.1".
struct NamePart {
  std::string text;
  bool joined = false;  // to the next part, without anything between them: the 8 of "8b"
};

struct NameParts {
  std::vector<NamePart> parts;

  // Letters' case, blanks and punctuation left out.
  bool equals(const NameParts& other) const;
  // True where `other` begins with these parts and goes on where one may stop: "llama 3" begins "llama-3-8b",
  // "a10" does not begin "a10g".
  bool begins(const NameParts& other) const;
  std::string compact() const;  // all parts, points left out: "llama318b"
};

// `ignored` words are left out, on their own or before a word they are written together with ("geforcertx").
NameParts name_parts(std::string_view name, const std::vector<std::string>& ignored = {});

// What people write behind a model's name that does not change its shapes, taken off: "-Instruct", "-it",
// "-chat",
// "-hf", "-GGUF", a release's date ("-2507"), and words of a quantisation ("-AWQ", ":Q4_K_M", "-4.0bpw").
struct Shortened {
  std::string name;
  bool format = false;  // what was taken off says how weights are stored
  bool changed = false;
};
Shortened without_last_ending(std::string_view name);

// A card's name without the words that state its memory: "HBM3", "GDDR6X"; with `size`, "80GB", too.
std::string without_memory(std::string_view name, bool size);

}  // namespace memwall
