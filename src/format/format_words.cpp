#include "format/format_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>

namespace memwall {
namespace {

// Words are compared by their letters and digits alone.
std::string compact(std::string_view word) {
  std::string letters;
  for (const char c : word) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0)
      letters += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return letters;
}

std::string lower(std::string_view word) {
  std::string text(word);
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

// What a word is taken for. An empty `why`: only another spelling.
struct Meaning {
  std::string_view words;  // compact, blanks between
  std::string_view format;
  std::string_view why;
};

constexpr std::string_view kAwqGroups = "AWQ's usual groups of 128 with zero points";
constexpr std::string_view kGptqGroups = "groups of 128 without zero points; -zp behind it adds them";
constexpr std::string_view kInt4 =
    "groups of 128, of GPTQ and compressed-tensors; int4-g128-zp (AWQ), int4-g64-zp16 (MLX), nf4 "
    "(bitsandbytes), "
    "mxfp4 and nvfp4 have 4 bits, too";
constexpr std::string_view kInt8Row =
    "an f32 scale a row; q8_0 (GGUF), int8-g64-zp16 (MLX) and f8_e4m3 have 8 bits, too";
constexpr std::string_view kMlx = "MLX's usual groups of 64 with a 16-bit scale and bias";
constexpr std::string_view kOneScale =
    "one scale a tensor; f8_e4m3-c has one a row, f8_e4m3-b128 one a 128x128 block (DeepSeek, Qwen)";

constexpr std::array kMeanings = {
    Meaning{"fp32 float32 float full 32bit", "f32", ""},
    Meaning{"fp16 float16 half", "f16", ""},
    Meaning{"bfloat16 bfp16 brainfloat16", "bf16", ""},
    Meaning{"16bit", "bf16", "f16 has 16 bits, too"},
    Meaning{"e4m3 fp8e4m3 e4m3fn fp8e4m3fn f8e4m3fn float8e4m3 float8e4m3fn", "f8_e4m3", ""},
    Meaning{"fp8 f8 float8 w8a8fp8 fp8w8a8 fp8dynamic modeloptfp8", "f8_e4m3", kOneScale},
    Meaning{"fp8perchannel fp8channel fbgemmfp8 ptpcfp8", "f8_e4m3-c", "one scale a row"},
    Meaning{"fp8block fp8blockwise blockfp8 finegrainedfp8", "f8_e4m3-b128", "one f32 scale a 128x128 block"},
    Meaning{"int8 i8 w8a8 w8a16 w8a8int8 8bit w8 smoothquant llmint8 bnb8bit bnbint8 quanto8bit", "int8-c",
            kInt8Row},
    Meaning{"int4 i4 w4a16 4bit w4 w4a8 marlin autoround", "int4-g128", kInt4},
    Meaning{"gptq gptqint4 int4gptq gptq4bit gptqmarlin", "int4-g128", kGptqGroups},
    Meaning{"gptqint8 gptq8bit", "int8-g128", kGptqGroups},
    Meaning{"awq awqint4 int4awq awq4bit awqmarlin autoawq", "int4-g128-zp", kAwqGroups},
    Meaning{"int3 3bit w3a16 w3", "int3-g128", "groups of 128 with an f16 scale"},
    Meaning{"int2 2bit w2a16 w2", "int2-g64", "groups of 64 with an f16 scale"},
    Meaning{"int6 6bit", "int6-g64", "groups of 64 with an f16 scale; q6_k (GGUF) has 6 bits, too"},
    Meaning{"mlx mlx4bit mlxint4 hqq hqq4bit", "int4-g64-zp16", kMlx},
    Meaning{"mlx2bit hqq2bit", "int2-g64-zp16", kMlx},
    Meaning{"mlx3bit hqq3bit", "int3-g64-zp16", kMlx},
    Meaning{"mlx5bit", "int5-g64-zp16", kMlx},
    Meaning{"mlx6bit", "int6-g64-zp16", kMlx},
    Meaning{"mlx8bit hqq8bit", "int8-g64-zp16", kMlx},
    Meaning{"bnb bitsandbytes bnb4bit bnbnf4 bitsandbytes4bit normalfloat4", "nf4",
            "without double quantisation; nf4-dq has it"},
    Meaning{"qlora bnb4bitdq nf4doublequant", "nf4-dq", "double quantisation, as QLoRA has it"},
    Meaning{"modeloptfp4 nvidiafp4 fp4nvidia", "nvfp4", ""},
    Meaning{"ocpfp4 microscalingfp4", "mxfp4", ""},
    Meaning{"q8", "q8_0", "ggml's 8-bit type"},
    Meaning{"q6", "q6_k", "ggml's 6-bit type"},
};

// llama-quantize's mixes: most tensors in one type, the more sensitive ones in wider ones. Average bits a
// weight for Llama 3.1 8B, from llama.cpp's tools/quantize/README.md; 0: not listed there.
struct Mix {
  std::string_view word;  // compact
  std::string_view name;
  double bits;
  std::string_view nearest;
};
constexpr std::array kMixes = {
    Mix{"iq1s", "IQ1_S", 2.0042, "iq1_s"},
    Mix{"iq1m", "IQ1_M", 2.1460, "iq1_m"},
    Mix{"iq2xxs", "IQ2_XXS", 2.3824, "iq2_xxs"},
    Mix{"iq2xs", "IQ2_XS", 2.5882, "iq2_xs"},
    Mix{"iq2s", "IQ2_S", 2.7403, "iq2_xs"},
    Mix{"iq2m", "IQ2_M", 2.9294, "iq2_s"},
    Mix{"iq3xxs", "IQ3_XXS", 3.2548, "iq3_xxs"},
    Mix{"iq3xs", "IQ3_XS", 3.4977, "iq3_s"},
    Mix{"iq3s", "IQ3_S", 3.6606, "iq3_s"},
    Mix{"iq3m", "IQ3_M", 3.7628, "iq3_s"},
    Mix{"iq4xs", "IQ4_XS", 4.4597, "iq4_xs"},
    Mix{"iq4nl", "IQ4_NL", 4.6818, "iq4_nl"},
    Mix{"q2ks", "Q2_K_S", 2.9697, "q2_k"},
    Mix{"q2k", "Q2_K", 3.1593, "q2_k"},
    Mix{"q2kl", "Q2_K_L", 0, "q2_k"},
    Mix{"q2kxl", "Q2_K_XL", 0, "q2_k"},
    Mix{"q3ks", "Q3_K_S", 3.6429, "q3_k"},
    Mix{"q3km", "Q3_K_M", 3.9960, "q3_k"},
    Mix{"q3kl", "Q3_K_L", 4.2979, "q3_k"},
    Mix{"q3kxl", "Q3_K_XL", 0, "q3_k"},
    Mix{"q4ks", "Q4_K_S", 4.6672, "q4_k"},
    Mix{"q4km", "Q4_K_M", 4.8944, "q4_k"},
    Mix{"q4kl", "Q4_K_L", 0, "q4_k"},
    Mix{"q4kxl", "Q4_K_XL", 0, "q4_k"},
    Mix{"q5ks", "Q5_K_S", 5.5704, "q5_k"},
    Mix{"q5km", "Q5_K_M", 5.7036, "q5_k"},
    Mix{"q5kl", "Q5_K_L", 0, "q5_k"},
    Mix{"q5kxl", "Q5_K_XL", 0, "q5_k"},
    Mix{"q6kl", "Q6_K_L", 0, "q6_k"},
    Mix{"q6kxl", "Q6_K_XL", 0, "q6_k"},
    Mix{"q8kxl", "Q8_K_XL", 0, "q8_0"},
};

bool is_one_of(std::string_view words, const std::string& word) {
  std::size_t at = 0;
  while ((at = words.find(word, at)) != std::string_view::npos) {
    const std::size_t end = at + word.size();
    if ((at == 0 || words[at - 1] == ' ') && (end == words.size() || words[end] == ' ')) return true;
    at = end;
  }
  return false;
}

std::string bits_text(double bits) { return fmt::format("{:.4g}", bits); }
std::string average_text(double bits) {
  return fmt::format("{:.2f} bits a weight on average in Llama 3.1 8B", bits);
}

std::string listed(const std::vector<std::string>& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) text += i + 1 == words.size() ? " or " : ", ";
    text += words[i];
  }
  return text;
}

// Formats nearest to so many bits a weight, with their own bits: "q4_k (4.5)".
std::string of_size(double bits, std::size_t most) {
  std::vector<std::string> names = format_names();
  const auto off = [&](const std::string& name) {
    return std::abs(bits_per_weight(*find_format(name)) - bits);
  };
  std::stable_sort(names.begin(), names.end(),
                   [&](const std::string& a, const std::string& b) { return off(a) < off(b); });
  names.resize(std::min(names.size(), most));
  for (std::string& name : names) name += " (" + bits_text(bits_per_weight(*find_format(name))) + ")";
  return listed(names);
}

// "4.5bpw", "4bpw", "3.0 bits": the number; 0 for anything else.
double size_named(std::string_view word) {
  std::string text = lower(word);
  for (const std::string_view frame : {"exl2", "exl3", "gguf"}) {
    const std::size_t at = text.find(frame);
    if (at != std::string::npos) text.erase(at, frame.size());
  }
  std::size_t start = 0;
  while (start < text.size() && std::isdigit(static_cast<unsigned char>(text[start])) == 0) ++start;
  double bits = 0;
  const auto [end, error] = std::from_chars(text.data() + start, text.data() + text.size(), bits);
  if (error != std::errc{} || !compact(std::string_view(text).substr(0, start)).empty()) return 0;
  const std::string unit = compact(std::string_view(end, text.data() + text.size()));
  const bool of_bits = unit == "bpw" || unit == "bits" || unit == "bit" || unit.empty();
  return of_bits && bits >= 1 && bits <= 32 ? bits : 0;
}

std::size_t distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t corner = row[0]++;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substituted = corner + (a[i - 1] == b[j - 1] ? 0 : 1);
      corner = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row[b.size()];
}

char first_digit(const std::string& word) {
  const std::size_t at = word.find_first_of("0123456789");
  return at == std::string::npos ? ' ' : word[at];
}

// The names within a slip of the finger; sorted letters find two that changed places. The first digit must
// agree: 4 and 8 bits are no misspelling of each other.
std::vector<std::string> misspelt(const std::string& word, const std::vector<std::string>& names) {
  constexpr std::size_t kLongest = 32;  // no name is as long
  std::vector<std::string> near;
  if (word.size() > kLongest) return near;
  const auto sorted = [](std::string text) {
    std::sort(text.begin(), text.end());
    return text;
  };
  for (const std::string& name : names) {
    const std::string letters = compact(name);
    const bool slip = first_digit(letters) == first_digit(word) && distance(word, letters) <= 1;
    if (slip || sorted(word) == sorted(letters)) near.push_back(name);
  }
  if (near.size() > 3) near.resize(3);
  return near;
}

// The bits that a word's first number between 1 and 32 may mean: "fp8-mixed" 8.
double bits_in(const std::string& word) {
  for (std::size_t i = 0; i < word.size(); ++i) {
    if (std::isdigit(static_cast<unsigned char>(word[i])) == 0) continue;
    int bits = 0;
    std::from_chars(word.data() + i, word.data() + word.size(), bits);
    return bits >= 1 && bits <= 32 ? bits : 0;
  }
  return 0;
}

std::string mix_hint(const Mix& mix) {
  std::string text = "it is a mix of formats in a GGUF file";
  if (mix.bits > 0) text += ", " + average_text(mix.bits);
  text += "; name the .gguf file as MODEL for its exact bytes, or take ";
  text += mix.nearest;
  text += " (" + bits_text(bits_per_weight(*find_format(mix.nearest))) + "), the type of most of its tensors";
  return text;
}

const Mix* find_mix(const std::string& word) {
  // Unsloth's dynamic mixes: UD-Q4_K_XL.
  const std::string plain = word.rfind("ud", 0) == 0 ? word.substr(2) : word;
  for (const Mix& mix : kMixes) {
    if (mix.word == plain) return &mix;
  }
  return nullptr;
}

// Words that name no single format.
std::string weights_hint(std::string_view word, const std::string& letters) {
  if (letters == "fp4" || letters == "f4" || letters == "w4a4" || letters == "float4")
    return "4-bit floats are nvfp4 (4.5 bits, NVIDIA) or mxfp4 (4.25 bits, OCP)";
  if (letters == "q4" || letters == "q5") {
    const std::string n(1, letters[1]);
    return "ggml has more than one of that width: q" + n + "_0, q" + n + "_1 or q" + n +
           "_k, which most GGUF files mix";
  }
  if (letters == "q2" || letters == "q3")
    return "ggml's type is q" + std::string(1, letters[1]) + "_k, which most GGUF files mix with wider ones";
  if (letters.find("e5m2") != std::string::npos)
    return "no checkpoint stores weights in e5m2; f8_e4m3 takes as many bytes";
  if (letters == "fp6" || letters == "mxfp6" || letters == "fp5" || letters == "w6a16")
    return "it is not supported; of about " + std::string(1, letters[letters.find_first_of("56")]) +
           " bits are " + of_size(bits_in(letters), 3);
  if (letters == "gguf" || letters == "ggml")
    return "a GGUF file holds tensors of several formats; name the .gguf file as MODEL, or one of its types, "
           "like q4_k";
  if (letters == "exl2" || letters == "exl3" || letters == "exllama" || letters == "exllamav2")
    return "exl2 and exl3 mix widths to reach a size; take a format of that size, like int4-g128 (4.125) or "
           "q4_k (4.5)";
  if (letters == "tf32") return "tf32 is a way to compute; in memory it is f32";
  if (const double bits = size_named(word); bits > 0)
    return "it is a size: exl2 and exl3 mix widths to reach it; of about " + bits_text(bits) +
           " bits a weight are " + of_size(bits, 4);
  if (const std::vector<std::string> near = misspelt(letters, format_names()); !near.empty())
    return "did you mean " + listed(near) + "?";
  if (word.find_first_of(":=") != std::string_view::npos)
    return "a format for a part is written PART=FORMAT, like experts=mxfp4";
  const bool plain = std::all_of(word.begin(), word.end(), [](char c) { return c >= ' ' && c <= '~'; });
  if (const double bits = bits_in(letters); bits > 0 && plain)
    return "of about " + bits_text(bits) + " bits a weight are " + of_size(bits, 4);
  return "it is one of f32, f16, bf16, f8_e4m3, int8-c, int4-g128, nf4, mxfp4, nvfp4 or a ggml type like "
         "q8_0 and q4_k";
}

constexpr std::array kKvMeanings = {
    Meaning{"fp32 float32 float", "f32", ""},
    Meaning{"fp16 float16 half", "f16", ""},
    Meaning{"bfloat16", "bf16", ""},
    Meaning{"16bit", "bf16", "f16 has 16 bits, too"},
    Meaning{"e4m3 fp8e4m3 e4m3fn fp8e4m3fn f8e4m3fn float8e4m3 float8e4m3fn", "f8_e4m3", ""},
    Meaning{"e5m2 fp8e5m2 float8e5m2", "f8_e5m2", ""},
    Meaning{"fp8 f8 float8", "f8_e4m3", "as engines do; f8_e5m2 takes as many bytes"},
    Meaning{"i8 int8pertoken int8pertokenhead", "int8", ""},
    Meaning{"q8", "q8_0", "ggml's 8-bit type"},
    Meaning{"q4", "q4_0", "ggml's 4-bit type; q4_1 has an offset, too"},
    Meaning{"q5", "q5_0", "ggml's 5-bit type; q5_1 has an offset, too"},
    Meaning{"fp4 f4 nvidiafp4", "nvfp4", "an 8-bit scale for 16 values"},
};

std::string kv_hint(const std::string& letters, bool is_weight_format) {
  if (letters == "auto" || letters == "default" || letters == "none")
    return "leave --kv out for the model's own";
  if (letters == "8bit" || letters == "w8") return "8 bits are f8_e4m3, int8 (8 + 16 a vector) or q8_0 (8.5)";
  if (letters == "4bit" || letters == "int4" || letters == "i4" || letters == "mxfp4")
    return "4-bit caches are q4_0 (4.5 bits an element, llama.cpp) or nvfp4 (4.5)";
  const bool mix = is_weight_format || find_mix(letters) != nullptr;
  if (const std::vector<std::string> near = misspelt(letters, kv_format_names()); !mix && !near.empty())
    return "did you mean " + listed(near) + "?";
  return "a KV cache is one of " + listed(kv_format_names());
}

template <typename Named, typename Find, std::size_t N>
std::optional<FormatWord<Named>> named(std::string_view word, const std::string& letters,
                                       const std::vector<std::string>& names, Find find,
                                       const std::array<Meaning, N>& meanings) {
  if (letters.empty()) return std::nullopt;
  for (const Meaning& meaning : meanings) {
    if (is_one_of(meaning.words, letters))
      return FormatWord<Named>{find(meaning.format), std::string(meaning.why), ""};
  }
  for (const std::string& name : names) {
    if (compact(name) == letters) return FormatWord<Named>{find(name), "", ""};
  }
  if (const std::optional<Named> exact = find(lower(word))) return FormatWord<Named>{exact, "", ""};
  return std::nullopt;
}

}  // namespace

FormatWord<Format> read_format_word(std::string_view word) {
  if (const std::optional<Format> exact = find_format(word)) return {exact};
  const std::string letters = compact(word);
  const Mix* mix = find_mix(letters);
  if (auto found = named<Format>(word, letters, format_names(), find_format, kMeanings)) {
    // IQ2_XS is a type, and the name of a mix that is wider.
    if (mix != nullptr)
      found->taken = "every linear in this type; a GGUF of this name is a mix of " + average_text(mix->bits);
    return *found;
  }
  if (mix != nullptr) return {std::nullopt, "", mix_hint(*mix)};
  // Groups of another size than the common ones: "INT4-G256".
  if (const std::optional<Format> group = find_format(lower(word))) return {group};
  return {std::nullopt, "", weights_hint(word, letters)};
}

FormatWord<KvFormat> read_kv_format_word(std::string_view word) {
  if (const std::optional<KvFormat> exact = find_kv_format(word)) return {exact};
  const std::string letters = compact(word);
  if (auto found = named<KvFormat>(word, letters, kv_format_names(), find_kv_format, kKvMeanings))
    return *found;
  return {std::nullopt, "", kv_hint(letters, read_format_word(word).format.has_value())};
}

}  // namespace memwall
