#include "checkpoint/gguf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "checkpoint/ggml_types.h"
#include "paths.h"
#include "tests/checkpoint/gguf_files.h"

namespace memwall {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

TEST_F(GgufFiles, EveryTypeOfValueIsRead) {
  GgufWriter writer;
  writer.scalar<std::uint8_t>("u8", GgufType::uint8, 255)
      .scalar<std::int8_t>("i8", GgufType::int8, -128)
      .scalar<std::uint16_t>("u16", GgufType::uint16, 65'535)
      .scalar<std::int16_t>("i16", GgufType::int16, -32'768)
      .scalar<std::uint32_t>("u32", GgufType::uint32, 4'294'967'295)
      .scalar<std::int32_t>("i32", GgufType::int32, -5)
      .scalar<std::uint64_t>("u64", GgufType::uint64, 1ULL << 63)
      .scalar<std::int64_t>("i64", GgufType::int64, -(1LL << 40))
      .scalar<double>("f64", GgufType::float64, 0.1)
      .number("f32", 0.5F)
      .flag("flag", true)
      .text("text", "two\nlines")
      .integers("integers", {4, 0, -4})
      .array<std::uint64_t>("big", GgufType::uint64, {7, ~0ULL})
      .array<std::uint8_t>("flags", GgufType::boolean, {1, 0})
      .array<float>("floats", GgufType::float32, {1.5F, 2.5F})
      .texts("texts", {"a", "", "c"})
      .integers("none", {});
  const Gguf file = read(writer);
  EXPECT_EQ(file.metadata.size(), 18U);
  EXPECT_EQ(file.integer("u8"), 255);
  EXPECT_EQ(file.integer("i8", {-200, 0}), -128);
  EXPECT_EQ(file.integer("u16"), 65'535);
  EXPECT_EQ(file.integer("i16", {-40'000, 0}), -32'768);
  EXPECT_EQ(file.integer("u32"), 4'294'967'295);
  EXPECT_EQ(file.integer("i32", {-5, -5}), -5);
  EXPECT_EQ(std::get<std::uint64_t>(file.metadata.at("u64").value), 1ULL << 63);
  EXPECT_EQ(file.integer_or("i64", 0, {-(1LL << 40), 0}), -(1LL << 40));
  EXPECT_EQ(file.number_or("f64", 0), 0.1);
  EXPECT_EQ(file.number_or("f32", 0), 0.5);
  EXPECT_EQ(file.number_or("i32", 0), -5);
  EXPECT_TRUE(file.flag_or("flag", false));
  EXPECT_EQ(file.text("text"), "two\nlines");
  EXPECT_THAT(file.integers("integers", {-4, 4}), ElementsAre(4, 0, -4));
  EXPECT_THAT(file.integers("big"), ElementsAre(7, std::numeric_limits<std::int64_t>::max()));
  EXPECT_THAT(file.integers("flags"), ElementsAre(1, 0));
  EXPECT_THAT(file.integers("u8"), ElementsAre(255));
  EXPECT_THAT(std::get<GgufArray>(file.metadata.at("floats").value).numbers, ElementsAre(1.5, 2.5));
  EXPECT_THAT(std::get<GgufArray>(file.metadata.at("texts").value).strings, ElementsAre("a", "", "c"));
  EXPECT_TRUE(std::get<GgufArray>(file.metadata.at("none").value).is_kept());

  EXPECT_FALSE(file.has("other"));
  EXPECT_EQ(file.integer_or("other", 3), 3);
  EXPECT_EQ(file.number_or("other", 1.5), 1.5);
  EXPECT_FALSE(file.flag_or("other", false));
  EXPECT_EQ(file.text_or("other", "llama"), "llama");
}

TEST_F(GgufFiles, GettersRefuseWhatIsNotThereOrNotOfTheirType) {
  GgufWriter writer;
  writer.text("text", "x")
      .integer("layers", 80)
      .flag("flag", true)
      .number("scale", INFINITY)
      .texts("names", {"a"});
  writer.integers("none", {})
      .integers("heads", {8, -1})
      .scalar<std::uint64_t>("huge", GgufType::uint64, ~0ULL);
  const Gguf file = read(writer);
  const auto refused = [&](auto call) { return error_of(call).substr(path().size()); };
  EXPECT_EQ(refused([&] { file.text("name"); }), ": the metadata key 'name' is missing");
  EXPECT_EQ(refused([&] { file.integer("name"); }), ": the metadata key 'name' is missing");
  EXPECT_EQ(refused([&] { file.text("layers"); }), ": 'layers' is an integer; it must be a text");
  EXPECT_EQ(refused([&] { file.integer("text"); }), ": 'text' is a text; it must be an integer");
  EXPECT_EQ(refused([&] { file.integer("heads"); }), ": 'heads' is an array; it must be an integer");
  EXPECT_EQ(refused([&] { file.integer("flag"); }), ": 'flag' is a bool; it must be an integer");
  EXPECT_EQ(refused([&] { file.integer_or("layers", 1, {1, 64}); }), ": 'layers' is 80; it must be 1 to 64");
  EXPECT_THAT(refused([&] { file.integer("huge"); }),
              HasSubstr("'huge' is 18446744073709551615; it must be 0 to"));
  EXPECT_EQ(refused([&] { file.number_or("scale", 1); }), ": 'scale' is inf; it must be finite");
  EXPECT_EQ(refused([&] { file.number_or("text", 1); }), ": 'text' is a text; it must be a number");
  EXPECT_EQ(refused([&] { file.flag_or("layers", true); }), ": 'layers' is an integer; it must be a bool");
  EXPECT_THAT(refused([&] {
                file.integers("heads", {0, 64});
              }),
              HasSubstr("'heads' is -1; it must be 0 to 64"));
  EXPECT_THAT(refused([&] { file.integers("names"); }), HasSubstr("an array of 1 elements of type string"));
  EXPECT_THAT(refused([&] { file.integers("none"); }), HasSubstr("an array of 0 elements of type int32"));
}

TEST_F(GgufFiles, TensorsHaveTheirShapesSlowestFirstAndTheirBytes) {
  GgufWriter writer;
  writer.tensor("token_embd.weight", "Q4_K", {2048, 32'000})
      .tensor("blk.0.ffn_up_exps.weight", "MXFP4", {2880, 5760, 32})
      .tensor("blk.0.attn_norm.weight", "F32", {5});
  const Gguf file = read(writer);
  ASSERT_EQ(file.tensors.size(), 3U);
  EXPECT_EQ(file.tensors[0].name, "token_embd.weight");
  EXPECT_THAT(file.tensors[0].shape, ElementsAre(32'000, 2048));
  EXPECT_EQ(file.tensors[0].type, "Q4_K");
  EXPECT_EQ(file.tensors[0].format, find_format("q4_k"));
  EXPECT_EQ(file.tensors[0].bytes, 32'000 * 2048 / 256 * 144);
  EXPECT_THAT(file.tensors[1].shape, ElementsAre(32, 5760, 2880));
  EXPECT_EQ(file.tensors[1].bytes, 32LL * 5760 * 2880 / 32 * 17);
  EXPECT_EQ(file.tensors[1].elements(), 32LL * 5760 * 2880);
  EXPECT_EQ(file.tensors[2].bytes, 20);
  EXPECT_EQ(file.data_bytes, file.tensors[0].bytes + file.tensors[1].bytes + 32);
  EXPECT_EQ(file.version, 3U);
  EXPECT_THAT(file.files, ElementsAre(path()));
}

// The bits a weight that llama.cpp's and gguf-py's documentation give for each type.
TEST(GgmlTypes, TakeTheirPublishedBitsAWeight) {
  const std::map<std::string, double> bits = {
      {"F32", 32},       {"F16", 16},         {"BF16", 16},      {"F64", 64},        {"I8", 8},
      {"I16", 16},       {"I32", 32},         {"I64", 64},       {"Q4_0", 4.5},      {"Q4_1", 5},
      {"Q5_0", 5.5},     {"Q5_1", 6},         {"Q8_0", 8.5},     {"Q8_1", 9},        {"Q2_K", 2.625},
      {"Q3_K", 3.4375},  {"Q4_K", 4.5},       {"Q5_K", 5.5},     {"Q6_K", 6.5625},   {"Q8_K", 9.125},
      {"IQ1_S", 1.5625}, {"IQ1_M", 1.75},     {"IQ2_S", 2.5625}, {"IQ2_XS", 2.3125}, {"IQ2_XXS", 2.0625},
      {"IQ3_S", 3.4375}, {"IQ3_XXS", 3.0625}, {"IQ4_NL", 4.5},   {"IQ4_XS", 4.25},   {"TQ1_0", 1.6875},
      {"TQ2_0", 2.0625}, {"MXFP4", 4.25},     {"NVFP4", 4.5},    {"Q1_0", 1.125},    {"Q2_0", 2.25}};
  std::set<std::string> without_format;
  std::size_t known = 0;
  for (std::uint32_t id = 0; id < 64; ++id) {
    const GgmlType* type = find_ggml_type(id);
    if (type == nullptr) continue;
    ++known;
    SCOPED_TRACE(type->name);
    EXPECT_TRUE(removed_ggml_type(id).empty());
    EXPECT_EQ(find_ggml_type(type->name), type);
    EXPECT_EQ(8.0 * static_cast<double>(type->bytes) / static_cast<double>(type->block),
              bits.at(std::string(type->name)));
    if (const auto format = weight_format(*type)) {
      EXPECT_EQ(storage_bytes(*format, 3, 5 * type->block), 15 * type->bytes);
    } else {
      without_format.insert(std::string(type->name));
    }
  }
  EXPECT_EQ(known, bits.size());
  EXPECT_THAT(without_format,
              ElementsAre("F64", "I16", "I32", "I64", "I8", "NVFP4", "Q1_0", "Q2_0", "Q8_1", "Q8_K"));
}

TEST_F(GgufFiles, AFileMayBeOfVersion2OtherAlignmentAndWithoutItsLastPadding) {
  GgufWriter writer;
  writer.version = 2;
  writer.alignment = 256;
  writer.integer("general.alignment", 256).tensor("a", "F32", {1}).tensor("b", "F32", {1});
  writer.write(path());
  EXPECT_EQ(read_gguf(path()).data_bytes, 512);
  fs::resize_file(path(), writer.data_begin() + 260);
  const Gguf file = read_gguf(path());
  EXPECT_EQ(file.version, 2U);
  EXPECT_EQ(file.alignment, 256U);
  EXPECT_EQ(file.data_bytes, 260);
}

TEST_F(GgufFiles, AVocabularyAloneHasNoTensors) {
  const Gguf file =
      read(GgufWriter().text("general.architecture", "llama").texts("tokenizer.ggml.tokens", {"a"}));
  EXPECT_TRUE(file.tensors.empty());
  EXPECT_EQ(file.data_bytes, 0);
}

TEST_F(GgufFiles, LargeVocabulariesAreSkippedFast) {
  std::vector<std::string> tokens;
  for (int i = 0; i < 250'000; ++i) tokens.push_back("token " + std::to_string(i));
  GgufWriter writer;
  writer.texts("tokens", tokens).array("scores", GgufType::float32, std::vector<float>(250'000));
  writer.text("template", std::string(100'000, 'x')).text("json", std::string(3'000'000, 'x'));
  const std::string words = GgufWriter::array_begin(GgufType::string, 1) + GgufWriter::packed_text("word");
  writer.raw("nested", 9, GgufWriter::array_begin(GgufType::array, 2) + words + words);
  writer.tensor("a", "F16", {64, 64});
  writer.write(path());
  const auto begin = std::chrono::steady_clock::now();
  const Gguf file = read_gguf(path());
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(1));
  for (const auto& [key, type, count] :
       {std::tuple("tokens", "string", 250'000U), std::tuple("scores", "float32", 250'000U),
        std::tuple("json", "uint8", 3'000'000U), std::tuple("nested", "array", 2U)}) {
    const auto& array = std::get<GgufArray>(file.metadata.at(key).value);
    EXPECT_EQ(array.type, type);
    EXPECT_EQ(array.count, count);
    EXPECT_FALSE(array.is_kept());
  }
  EXPECT_EQ(file.text("template").size(), 100'000U);
  EXPECT_EQ(file.tensors.at(0).bytes, 8192);
}

// Real files, where the project's shared data are at hand.
std::string sample(const std::string& name) {
  return std::string(MEMWALL_SOURCE_DIR) + "/../shared/data/files/gguf/" + name;
}

TEST(GgufSamples, TensorsFillTheDataSections) {
  for (const char* name : {"tiny-Q2_K.gguf", "tiny-Q4_0.gguf", "tiny-Q4_K_M.gguf", "tiny-Q6_K.gguf"}) {
    if (!fs::exists(sample(name))) GTEST_SKIP() << "no sample";
    SCOPED_TRACE(name);
    const Gguf file = read_gguf(sample(name));
    EXPECT_EQ(file.text("general.architecture"), "llama");
    EXPECT_EQ(file.integer("llama.block_count"), 4);
    ASSERT_EQ(file.tensors.size(), 39U);
    std::int64_t padded = 0;
    std::map<std::string, int> types;
    for (const StoredTensor& tensor : file.tensors) {
      padded += (tensor.bytes + 31) / 32 * 32;
      ++types[tensor.type];
      EXPECT_TRUE(tensor.format);
    }
    EXPECT_EQ(padded, file.data_bytes);
    EXPECT_EQ(types["F32"], 9);
    if (std::string(name) == "tiny-Q4_K_M.gguf") {
      EXPECT_GT(types["Q4_K"], 0);
      EXPECT_GT(types["Q6_K"], 0);
    }
  }
}

TEST(GgufSamples, TheVocabularyOfPhi3HasNoTensors) {
  const std::string path = sample("llamacpp__ggml-vocab-phi-3.gguf");
  if (!fs::exists(path)) GTEST_SKIP() << "no sample";
  const Gguf file = read_gguf(path);
  EXPECT_TRUE(file.tensors.empty());
  EXPECT_EQ(file.text("general.architecture"), "phi3");
  EXPECT_EQ(std::get<GgufArray>(file.metadata.at("tokenizer.ggml.tokens").value).count, 32'064U);
}

// The bits that ik_llama.cpp's own table prints for its types, and the bytes of a row's scale.
TEST_F(GgufFiles, KnowsTheTypesOfIkLlama) {
  struct Published {
    std::uint32_t id;
    const char* name;
    double bits;
    std::int64_t row_bytes;
  };
  for (const Published& type :
       {Published{133, "Q6_0", 6.5, 0}, {134, "IQ1_BN", 1.625, 2},   {135, "IQ2_BN", 2.0, 4},
        {137, "IQ2_K", 2.375, 0},       {138, "IQ3_K", 3.4375, 0},   {139, "IQ4_K", 4.5, 0},
        {140, "IQ5_K", 5.5, 0},         {141, "IQ6_K", 6.625, 0},    {144, "IQ4_KS", 4.25, 4},
        {145, "IQ2_KS", 2.1875, 2},     {146, "IQ4_KSS", 4.0, 4},    {152, "IQ5_KS", 5.25, 4},
        {153, "IQ2_KT", 2.125, 4},      {154, "IQ3_KT", 3.125, 4},   {155, "IQ4_KT", 4.0, 4},
        {156, "IQ3_KS", 3.1875, 2},     {157, "IQ2_KL", 2.6875, 2},  {158, "IQ1_KT", 1.75, 4},
        {202, "Q4_0_R8", 4.5, 0},       {219, "IQ1_S_R4", 1.5, 2},   {229, "IQ1_M_R4", 1.75, 2},
        {230, "BF16_R16", 16, 0},       {344, "IQ4_KS_R4", 4.25, 4}, {399, "Q8_K_R8", 8.0625, 0}}) {
    SCOPED_TRACE(type.name);
    const GgmlType* known = find_ggml_type(type.id);
    ASSERT_NE(known, nullptr);
    EXPECT_EQ(known->name, type.name);
    EXPECT_TRUE(known->fork);
    EXPECT_EQ(8.0 * static_cast<double>(known->bytes) / static_cast<double>(known->block), type.bits);
    EXPECT_EQ(known->row_bytes, type.row_bytes);
    const Gguf file = read(GgufWriter().tensor("a", type.name, {512, 3, 2}).tensor("b", "F32", {8}));
    EXPECT_EQ(file.tensors[0].bytes, static_cast<std::int64_t>(512 * 6 * type.bits / 8) + 6 * type.row_bytes);
  }
  EXPECT_EQ(format_name(*weight_format(*find_ggml_type(212))), "q4_k");  // Q4_K_R4
  EXPECT_EQ(format_name(*weight_format(*find_ggml_type(230))), "bf16");
}

// A type that no table knows takes what lies between its data and the next tensor's, or the file's end.
TEST_F(GgufFiles, BytesOfTypesThatAreNotKnownFollowFromTheOffsets) {
  const Gguf file = read(
      GgufWriter().tensor_of("a", 250, {256, 2}, 320).tensor("b", "F32", {8}).tensor_of("c", 251, {64}, 64));
  EXPECT_EQ(file.tensors[0].type, "type 250");
  EXPECT_EQ(file.tensors[0].bytes, 320);
  EXPECT_FALSE(file.tensors[0].format);
  EXPECT_EQ(file.tensors[2].bytes, 64);
  EXPECT_THAT(error_of([&] {
                read(GgufWriter().tensor_at("a", 250, {256, 2}, 0));
              }),
              testing::HasSubstr("tensor 'a' has the type 250, which ggml does not define, and no data"));
}

}  // namespace
}  // namespace memwall
