#include "input/names.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace memwall {
namespace {

const std::vector<std::string> kVendors = {"nvidia", "geforce", "amd", "instinct"};

bool same(const char* a, const char* b) { return name_parts(a, kVendors).equals(name_parts(b, kVendors)); }
bool begins(const char* a, const char* b) { return name_parts(a, kVendors).begins(name_parts(b, kVendors)); }

TEST(NameParts, CaseBlanksAndPunctuationDoNotMatter) {
  for (const char* name : {"Llama-3.1-8B", "llama3.1:8b", "LLAMA 3.1 8b", "llama-3_1-8b", " llama--3.1-8-b"})
    EXPECT_TRUE(same(name, "llama-3.1-8b")) << name;
  for (const char* name : {"llama-31-8b", "llama-3-1-8b", "llama-3.1-80b", "llama-3.1", "llama-3.1-8b-x"})
    EXPECT_FALSE(same(name, "llama-3.1-8b")) << name;
  EXPECT_EQ(name_parts("llama-3-1-8b").compact(), name_parts("Llama 3.1 8B").compact());
}

TEST(NameParts, VendorsDoNotMatter) {
  for (const char* name :
       {"RTX 4090", "rtx4090", "NVIDIA GeForce RTX 4090", "GeForceRTX4090", "nvidia-rtx_4090"})
    EXPECT_TRUE(same(name, "rtx-4090")) << name;
  EXPECT_FALSE(same("RTX 4090 Laptop GPU", "rtx-4090"));
  EXPECT_TRUE(name_parts("NVIDIA", kVendors).parts.empty());
}

TEST(NameParts, BeginWhereANameMayStop) {
  EXPECT_TRUE(begins("a100", "a100-80gb"));
  EXPECT_TRUE(begins("qwen3-30b", "qwen3-30b-a3b"));
  EXPECT_TRUE(begins("qwen", "qwen3-8b"));
  EXPECT_TRUE(begins("llama3", "llama-3-8b"));
  EXPECT_FALSE(begins("a10", "a10g"));
  EXPECT_FALSE(begins("l40", "l40s"));
  EXPECT_FALSE(begins("h", "h100-sxm"));
  EXPECT_FALSE(begins("qwen3-8", "qwen3-8b"));
  EXPECT_FALSE(begins("a100-80gb", "a100-80gb"));
  EXPECT_FALSE(begins("", "a100"));
}

TEST(Endings, ComeOffOneByOne) {
  Shortened left = without_last_ending("Qwen3-30B-A3B-Instruct-2507");
  EXPECT_EQ(left.name, "Qwen3-30B-A3B-Instruct");
  left = without_last_ending(left.name);
  EXPECT_EQ(left.name, "Qwen3-30B-A3B");
  EXPECT_TRUE(left.changed);
  EXPECT_FALSE(left.format);
  EXPECT_FALSE(without_last_ending(left.name).changed);
  for (const char* ending :
       {"-AWQ", ":Q4_K_M", "-GPTQ", "-fp8", "-4bit", "-4.0bpw", "-w4a16", "-IQ2_XXS", "-UD"}) {
    left = without_last_ending(std::string("Model-7B") + ending);
    EXPECT_EQ(left.name, "Model-7B") << ending;
    EXPECT_TRUE(left.format) << ending;
  }
  for (const char* name : {"", "-", "instruct", "qwen3-8b", "mistral-7b-v0.3", "phi-3-mini", "x-12345"})
    EXPECT_FALSE(without_last_ending(name).changed) << name;
}

TEST(Memory, IsTakenOutOfACardsName) {
  EXPECT_EQ(without_memory("NVIDIA H100 80GB HBM3", false), "nvidia-h100-80gb");
  EXPECT_EQ(without_memory("NVIDIA H100 80GB HBM3", true), "nvidia-h100");
  EXPECT_EQ(without_memory("RTX 3090 24G GDDR6X", true), "rtx-3090");
}

}  // namespace
}  // namespace memwall
