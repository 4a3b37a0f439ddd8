#include "format/format_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace memwall {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::string taken(const char* word) {
  const FormatWord<Format> read = read_format_word(word);
  return read.format ? format_name(*read.format) : "nothing: " + read.hint;
}

std::string taken_kv(const char* word) {
  const FormatWord<KvFormat> read = read_kv_format_word(word);
  return read.format ? std::string(kv_format_name(*read.format)) : "nothing: " + read.hint;
}

TEST(FormatWords, OnlySpeltOtherwiseNeedNoWord) {
  const std::vector<std::pair<const char*, const char*>> words = {{"Q8_0", "q8_0"},
                                                                  {"q8-0", "q8_0"},
                                                                  {"Q4_K", "q4_k"},
                                                                  {"FP16", "f16"},
                                                                  {"fp16", "f16"},
                                                                  {"float16", "f16"},
                                                                  {"half", "f16"},
                                                                  {"BF16", "bf16"},
                                                                  {"bfloat16", "bf16"},
                                                                  {"fp32", "f32"},
                                                                  {"float32", "f32"},
                                                                  {"F8_E4M3", "f8_e4m3"},
                                                                  {"fp8_e4m3", "f8_e4m3"},
                                                                  {"float8_e4m3fn", "f8_e4m3"},
                                                                  {"NF4", "nf4"},
                                                                  {"MXFP4", "mxfp4"},
                                                                  {"NVFP4", "nvfp4"},
                                                                  {"INT4-G128", "int4-g128"},
                                                                  {"int4 g128", "int4-g128"},
                                                                  {"INT8-G256-ZP", "int8-g256-zp"},
                                                                  {"int8-c", "int8-c"}};
  for (const auto& [word, format] : words) {
    EXPECT_EQ(taken(word), format) << word;
    EXPECT_EQ(read_format_word(word).taken, "") << word;
  }
  for (const std::string& name : format_names()) EXPECT_EQ(taken(name.c_str()), name);
}

TEST(FormatWords, WhatPeopleSaySaysWhatWasTaken) {
  const std::vector<std::pair<const char*, const char*>> words = {{"fp8", "f8_e4m3"},
                                                                  {"FP8", "f8_e4m3"},
                                                                  {"int8", "int8-c"},
                                                                  {"w8a8", "int8-c"},
                                                                  {"W8A8", "int8-c"},
                                                                  {"8bit", "int8-c"},
                                                                  {"8-bit", "int8-c"},
                                                                  {"int4", "int4-g128"},
                                                                  {"w4a16", "int4-g128"},
                                                                  {"W4A16", "int4-g128"},
                                                                  {"4bit", "int4-g128"},
                                                                  {"4-bit", "int4-g128"},
                                                                  {"gptq", "int4-g128"},
                                                                  {"GPTQ-Int4", "int4-g128"},
                                                                  {"awq", "int4-g128-zp"},
                                                                  {"AWQ", "int4-g128-zp"},
                                                                  {"mlx-4bit", "int4-g64-zp16"},
                                                                  {"hqq", "int4-g64-zp16"},
                                                                  {"bnb-4bit", "nf4"},
                                                                  {"bitsandbytes", "nf4"},
                                                                  {"qlora", "nf4-dq"},
                                                                  {"q8", "q8_0"},
                                                                  {"Q6", "q6_k"},
                                                                  {"gptq-int8", "int8-g128"}};
  for (const auto& [word, format] : words) {
    EXPECT_EQ(taken(word), format) << word;
    EXPECT_NE(read_format_word(word).taken, "") << word;
    EXPECT_EQ(read_format_word(word).hint, "") << word;
  }
}

TEST(FormatWords, AMixOfAGgufIsNamedAsOneWithItsAverage) {
  EXPECT_THAT(taken("Q4_K_M"),
              AllOf(HasSubstr("mix"), HasSubstr("4.89 bits"), HasSubstr("q4_k (4.5)"), HasSubstr(".gguf")));
  EXPECT_EQ(taken("q4_k_m"), taken("Q4_K_M"));
  EXPECT_THAT(taken("Q5_K_S"), AllOf(HasSubstr("5.57 bits"), HasSubstr("q5_k (5.5)")));
  EXPECT_THAT(taken("IQ2_M"), AllOf(HasSubstr("2.93 bits"), HasSubstr("iq2_s")));
  EXPECT_THAT(taken("UD-Q4_K_XL"),
              AllOf(HasSubstr("mix"), Not(HasSubstr("average")), HasSubstr("q4_k (4.5)")));
  // The name of a type and of a mix that is wider.
  EXPECT_EQ(taken("IQ2_XS"), "iq2_xs");
  EXPECT_THAT(read_format_word("IQ2_XS").taken, HasSubstr("2.59 bits"));
  EXPECT_EQ(read_format_word("iq2_xs").taken, "");
}

TEST(FormatWords, ASizeGivesTheFormatsOfThatSize) {
  EXPECT_THAT(taken("4.5bpw"), AllOf(HasSubstr("exl2"), HasSubstr("q4_0 (4.5)"), HasSubstr("q4_k (4.5)")));
  EXPECT_THAT(taken("4.0bpw"), AllOf(HasSubstr("exl2"), HasSubstr("int4-g128 (4.125)")));
  EXPECT_THAT(taken("exl3-5.0bpw"), AllOf(HasSubstr("5 bits"), HasSubstr("q4_1 (5)")));
  EXPECT_THAT(taken("6.5"), HasSubstr("q6_k (6.562)"));
  EXPECT_THAT(taken("99bpw"), Not(HasSubstr("99")));
}

TEST(FormatWords, SuggestionsAreNearInMeaning) {
  EXPECT_THAT(taken("fp4"), AllOf(HasSubstr("nvfp4"), HasSubstr("mxfp4"), Not(HasSubstr("f32"))));
  EXPECT_THAT(taken("fp6"), AllOf(HasSubstr("6 bits"), Not(HasSubstr("mxfp8"))));
  EXPECT_THAT(taken("q4"), AllOf(HasSubstr("q4_0"), HasSubstr("q4_k"), Not(HasSubstr("q8"))));
  EXPECT_THAT(taken("fp8-mixed"), AllOf(HasSubstr("f8_e4m3"), Not(HasSubstr("f32"))));
  EXPECT_THAT(taken("bf61"), HasSubstr("did you mean bf16?"));
  EXPECT_THAT(taken("q4_00"), AllOf(HasSubstr("did you mean"), HasSubstr("q4_0")));
  EXPECT_THAT(taken("int4-g12"), HasSubstr("int4-g128"));
  for (const char* word : {"", "nope", "zzz", "-", "\xff\xfe", "999999999999999999999999"})
    EXPECT_THAT(taken(word), HasSubstr("it is one of")) << word;
  EXPECT_THAT(taken("experts:mxfp4"), HasSubstr("experts=mxfp4"));
  EXPECT_THAT(taken("a\x1b[31mb"), HasSubstr("it is one of"));
  EXPECT_THAT(taken(std::string(100'000, 'q').c_str()), HasSubstr("it is one of"));
}

TEST(KvFormatWords, AsPeopleWriteThem) {
  const std::vector<std::pair<const char*, const char*>> words = {
      {"q8_0", "q8_0"},     {"Q8_0", "q8_0"},     {"q4_0", "q4_0"},        {"Q5_1", "q5_1"},
      {"IQ4_NL", "iq4_nl"}, {"nvfp4", "nvfp4"},   {"fp8", "f8_e4m3"},      {"fp8_e4m3", "f8_e4m3"},
      {"e4m3", "f8_e4m3"},  {"e5m2", "f8_e5m2"},  {"fp8_e5m2", "f8_e5m2"}, {"fp16", "f16"},
      {"half", "f16"},      {"bfloat16", "bf16"}, {"INT8", "int8"},        {"fp32", "f32"},
      {"q4", "q4_0"}};
  for (const auto& [word, format] : words) EXPECT_EQ(taken_kv(word), format) << word;
  for (const std::string& name : kv_format_names()) {
    EXPECT_EQ(taken_kv(name.c_str()), name);
    EXPECT_EQ(read_kv_format_word(name).taken, "") << name;
  }
  EXPECT_THAT(read_kv_format_word("fp8").taken, HasSubstr("e5m2"));
}

TEST(KvFormatWords, OthersSayWhatThereIs) {
  EXPECT_THAT(taken_kv("int4"), AllOf(HasSubstr("q4_0"), HasSubstr("nvfp4")));
  EXPECT_THAT(taken_kv("8bit"), AllOf(HasSubstr("f8_e4m3"), HasSubstr("int8"), HasSubstr("q8_0")));
  EXPECT_THAT(taken_kv("auto"), HasSubstr("leave --kv out"));
  for (const char* word : {"", "q4_k", "turbo", "Q4_K_M"})
    EXPECT_THAT(taken_kv(word), AllOf(HasSubstr("is one of f32"), HasSubstr("q8_0"))) << word;
}

}  // namespace
}  // namespace memwall
