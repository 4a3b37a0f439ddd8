// Every wrong input: exit status 2, one line that says what is wrong, nothing on standard output, no file.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "paths.h"
#include "tests/cli/process.h"

namespace memwall {
namespace {

using ::testing::HasSubstr;

const std::string kTiny = MEMWALL_TEST_DATA "/fixtures/tiny.yaml";
const std::string kMixed = MEMWALL_TEST_DATA "/fixtures/mixed.yaml";
const std::string kHuge = MEMWALL_TEST_DATA "/fixtures/huge.yaml";

struct Refusal {
  const char* name;
  std::vector<std::string> arguments;
  std::vector<std::string> says;  // parts of the message
};

void PrintTo(const Refusal& refusal, std::ostream* out) { *out << refusal.name; }

class Refused : public ::testing::TestWithParam<Refusal> {};

TEST_P(Refused, WithOneLineAndStatus2) {
  const Finished done = run(GetParam().arguments);
  expect_refused(done, GetParam().name);
  for (const std::string& part : GetParam().says) EXPECT_THAT(done.err, HasSubstr(part));
}

std::vector<std::string> estimate(const std::string& option, const std::string& value) {
  return {"estimate", "llama-3.1-8b", "--card", "h200", option, value};
}

INSTANTIATE_TEST_SUITE_P(
    Arguments, Refused,
    ::testing::Values(
        Refusal{"no_command", {}, {"--help"}},
        Refusal{"unknown_command", {"estimat"}, {"'estimat'", "did you mean estimate"}},
        Refusal{"unknown_option", {"models", "--frob"}, {"unknown option '--frob'"}},
        Refusal{"misspelt_option",
                {"estimate", "llama-3.1-8b", "--crad", "h200"},
                {"unknown option '--crad'", "did you mean '--card'?"}},
        Refusal{"misspelt_option_with_a_value",
                {"estimate", "llama-3.1-8b", "--card", "h200", "--contxt=8"},
                {"unknown option '--contxt'", "'--context'"}},
        Refusal{"one_dash", {"estimate", "llama-3.1-8b", "-card", "h200"}, {"'-card'", "'--card'"}},
        Refusal{
            "a_long_dash", {"estimate", "llama-3.1-8b", "\u2014card", "h200"}, {"did you mean '--card'?"}},
        Refusal{"anothers_option", {"inspect", kTiny, "--card", "h200"}, {"'--card'", "estimate"}},
        Refusal{"option_before_the_command", {"--card", "h200"}, {"the command comes before"}},
        Refusal{"unknown_option_alone", {"--nope"}, {"unknown option '--nope'"}},
        Refusal{"flag_with_a_value",
                {"estimate", "llama-3.1-8b", "--card", "h200", "--ops=5"},
                {"--ops", "flag", "'=5'"}},
        Refusal{"value_missing", {"estimate", "llama-3.1-8b", "--card"}, {"--card", "missing"}},
        Refusal{"value_missing_before_an_option",
                {"estimate", "llama-3.1-8b", "--card", "--batch", "1"},
                {"--card", "missing"}},
        Refusal{"extra_argument", {"models", "extra"}, {"models", "'extra'"}},
        Refusal{"third_model", {"inspect", kTiny, kTiny, "extra"}, {"too many", "'extra'"}},
        Refusal{"list_with_blanks",
                {"estimate", "llama-3.1-8b", "--card", "h200,", "4090"},
                {"too many", "'4090'"}},
        Refusal{"no_model", {"estimate", "--card", "h200"}, {"MODEL is missing"}},
        Refusal{"nothing_but_the_command", {"estimate"}, {"MODEL is missing"}},
        Refusal{"no_card", {"estimate", "llama-3.1-8b"}, {"--card is missing"}},
        Refusal{"format_as_the_output", {"models", "-o", "json"}, {"'json'", "--format json"}},
        Refusal{"unknown_format", {"models", "--format", "xml"}, {"'xml'", "table, json, csv, md"}},
        Refusal{"format_in_capitals", {"models", "--format", "JSON"}, {"'JSON'"}},
        Refusal{"option_without_value", {"models", "--format"}, {"--format"}}),
    [](const auto& each) { return std::string(each.param.name); });

INSTANTIATE_TEST_SUITE_P(
    Numbers, Refused,
    ::testing::Values(
        Refusal{"batch_0", estimate("--batch", "0"), {"--batch", "0 is out of range", "1 to 1000000"}},
        Refusal{"batch_negative", estimate("--batch", "-1"), {"--batch", "-1"}},
        Refusal{"batch_empty_item", estimate("--batch", "1,,2"), {"--batch"}},
        Refusal{"batch_trailing_comma", estimate("--batch", "1,"), {"--batch"}},
        Refusal{"batch_empty", estimate("--batch", ""), {"--batch"}},
        Refusal{"batch_beyond_64_bits", estimate("--batch", "100000000000000000000"), {"--batch"}},
        Refusal{"batch_fraction", estimate("--batch", "1.5"), {"--batch", "1.5"}},
        Refusal{"batch_exponent", estimate("--batch", "1e3"), {"--batch", "1e3"}},
        Refusal{"batch_leading_zero", estimate("--batch", "01"), {"--batch", "01"}},
        Refusal{"batch_blank", estimate("--batch", "1, 2"), {"--batch"}},
        Refusal{"batch_word", estimate("--batch", "one"), {"--batch", "one"}},
        Refusal{
            "batch_range_too_long", estimate("--batch", "1-1000000"), {"--batch", "1000000 values", "10000"}},
        Refusal{"context_range_too_long",
                estimate("--context", "1-1000000000"),
                {"--context", "1000000000 values", "10000"}},
        Refusal{"batch_range_down", estimate("--batch", "8-1"), {"--batch", "'8-1'", "downwards"}},
        Refusal{"context_beyond_in_k", estimate("--context", "1000000k"), {"--context", "1000000k"}},
        Refusal{"batch_twice",
                {"estimate", "llama-3.1-8b", "--card", "h200", "--batch", "1", "--batch", "2"},
                {"--batch"}},
        Refusal{"context_0", estimate("--context", "0"), {"--context"}},
        Refusal{"context_too_long", estimate("--context", "1000000001"), {"--context"}},
        Refusal{"prompt_0", estimate("--prompt", "0"), {"--prompt"}},
        Refusal{"prompt_negative", estimate("--prompt", "-5"), {"--prompt"}},
        Refusal{"cache_beyond_64_bits",
                {"estimate", kHuge, "--card", "h200", "--context", "1000000000"},
                {"2^63 - 1"}},
        Refusal{
            "inspected_cache_beyond_64_bits", {"inspect", kHuge, "--context", "1000000000"}, {"2^63 - 1"}}),
    [](const auto& each) { return std::string(each.param.name); });

INSTANTIATE_TEST_SUITE_P(
    Names, Refused,
    ::testing::Values(
        Refusal{"missing_file", {"inspect", "/nowhere/model.yaml"}, {"/nowhere/model.yaml", "No such file"}},
        Refusal{"missing_card_file",
                {"estimate", kTiny, "--card", "./none.yaml"},
                {"./none.yaml", "No such file"}},
        // Three suggestions, the nearest first.
        Refusal{"unknown_model",
                {"inspect", "lama-3.1-8b"},
                {"'lama-3.1-8b'", "did you mean llama-3.1-8b, ", " or ", "memwall models"}},
        Refusal{"unknown_card",
                {"estimate", kTiny, "--card", "h2000"},
                {"'h2000'", "did you mean h200, ", " or ", "memwall cards"}},
        Refusal{"one_unknown_card_of_two", {"estimate", kTiny, "--card", "h200,nope"}, {"'nope'"}},
        Refusal{"empty_card", {"estimate", kTiny, "--card", "h200,,a100"}, {"--card", "empty"}},
        Refusal{"trailing_comma_of_cards", {"estimate", kTiny, "--card", "h200,"}, {"--card", "empty"}},
        Refusal{"unknown_weights", estimate("--weights", "q4"), {"--weights", "'q4'", "q4_0, q4_1 or q4_k"}},
        Refusal{"weights_of_a_mix",
                estimate("--weights", "Q4_K_M"),
                {"--weights", "'Q4_K_M'", "mix", "4.89 bits", "q4_k"}},
        Refusal{"weights_of_a_size", estimate("--weights", "4.5bpw"), {"'4.5bpw'", "exl2", "q4_k (4.5)"}},
        Refusal{"weights_of_4_bit_floats", estimate("--weights", "fp4"), {"'fp4'", "nvfp4", "mxfp4"}},
        Refusal{"empty_weights", estimate("--weights", "q4_0,"), {"--weights", "empty"}},
        Refusal{"unknown_head_weights", estimate("--head-weights", "nope"), {"--head-weights", "'nope'"}},
        Refusal{"unknown_kv", estimate("--kv", "q4_k"), {"--kv", "'q4_k'", "f32, f16, bf16, f8_e4m3, "}},
        Refusal{"models_of_one_family", {"inspect", "llama3"}, {"'llama3'", "llama-3-70b or llama-3-8b"}},
        Refusal{"cards_of_one_family",
                {"estimate", kTiny, "--card", "rtx"},
                {"rtx-3090", "rtx-4090", "rtx-5090"}},
        Refusal{
            "a_card_that_is_another", {"estimate", kTiny, "--card", "a10"}, {"'a10'", "a10g", "card YAML"}},
        Refusal{"an_owned_model_that_is_none",
                {"inspect", "owner/qwen9-1b"},
                {"'owner/qwen9-1b'", "no file", "qwen"}},
        Refusal{"inspect_of_two_formats", {"inspect", kTiny, "--weights", "f16,q4_0"}, {"one weight"}},
        Refusal{"line_break_in_a_name", {"inspect", "a\nb\033[31m"}, {"a\\x0ab\\x1b[31m"}}),
    [](const auto& each) { return std::string(each.param.name); });

INSTANTIATE_TEST_SUITE_P(
    Measuring, Refused,
    ::testing::Values(
        Refusal{
            "measure_in_too_little_memory", {"measure", kMixed, "--memory", "1MiB"}, {"--memory", "too few"}},
        Refusal{"measure_a_step_in_too_little_memory",
                {"measure", "llama-3.1-8b", "--step", "--memory", "1500MiB"},
                {"needs", "GiB"}},
        Refusal{"measure_in_more_than_there_is", {"measure", kMixed, "--memory", "1000TiB"}, {"--memory"}},
        Refusal{"measure_in_no_memory", {"measure", kMixed, "--memory", "1XB"}, {"--memory", "1XB"}},
        Refusal{"measure_an_unknown_format_of_two",
                {"measure", kMixed, "--weights", "q8_0,abacus"},
                {"--weights", "abacus"}},
        Refusal{"measure_too_many",
                {"measure", kMixed, "--weights", "f16,f16,f16,f16,f16,f16,f16,f16,f16,f16,f16", "--batch",
                 "1,2,3,4,5,6,7,8,9,10", "--context", "1,2,3,4,5,6,7,8,9"},
                {"1100 workloads", "1000"}},
        Refusal{"seed_negative", {"measure", kMixed, "--seed", "-1"}, {"--seed"}},
        Refusal{"seed_word", {"measure", kMixed, "--seed", "dice"}, {"--seed", "dice"}},
        Refusal{"seed_fraction", {"measure", kMixed, "--seed", "1.5"}, {"--seed", "1.5"}},
        Refusal{"seed_empty", {"measure", kMixed, "--seed", ""}, {"--seed"}},
        Refusal{"seed_beyond_63_bits", {"baseline", "--seed", "9223372036854775808"}, {"--seed"}},
        // Before the device is looked for.
        Refusal{"output_before_device",
                {"measure", kMixed, "-o", "/nowhere/x", "--device", "abacus"},
                {"/nowhere/x"}},
        Refusal{"measure_nowhere", {"measure", kMixed, "--device", "abacus"}, {"abacus"}},
        Refusal{"cuda_without_a_number", {"measure", kMixed, "--device", "cuda"}, {"'cuda'", "cuda:N"}},
        Refusal{"cuda_with_a_leading_zero", {"baseline", "--device", "cuda:01"}, {"'cuda:01'", "cuda:N"}},
        Refusal{"empty_device", {"baseline", "--device", ""}, {"--device", "empty"}},
        Refusal{"threads_of_a_gpu",
                {"baseline", "--device", "cuda:0", "--threads", "2"},
                {"cuda:0", "--threads", "leave"}},
        Refusal{"no_threads", {"measure", kMixed, "--threads", "0"}, {"--threads", "0 is out of range"}},
        Refusal{"threads_word", {"baseline", "--threads", "all"}, {"--threads", "'all'"}},
        Refusal{"more_threads_than_cpus",
                {"measure", kMixed, "--threads", "60000"},
                {"--threads", "60000", "CPU"}},
        Refusal{"cpus_word", {"baseline", "--cpus", "a"}, {"--cpus", "'a'", "0-3,8"}},
        Refusal{"cpus_twice", {"baseline", "--cpus", "0,0"}, {"--cpus", "twice"}},
        Refusal{"cpus_that_are_not_there",
                {"measure", kMixed, "--cpus", "65000"},
                {"--cpus", "65000", "may use"}},
        Refusal{"numa_word", {"baseline", "--numa", "far"}, {"--numa", "'far'", "local", "interleave"}},
        Refusal{"empty_output", {"models", "--output", ""}, {"--output", "empty"}},
        Refusal{"empty_memory", {"measure", kMixed, "--memory", ""}, {"--memory", "empty"}},
        Refusal{"empty_threads", {"baseline", "--threads", ""}, {"--threads", "empty"}},
        Refusal{"empty_cpus", {"baseline", "--cpus", ""}, {"--cpus", "empty"}},
        Refusal{"measure_batch_0", {"measure", kMixed, "--batch", "0"}, {"--batch"}},
        Refusal{"measure_prompt_negative", {"measure", kMixed, "--prompt", "-1"}, {"--prompt"}},
        Refusal{"measure_into_no_folder", {"measure", kMixed, "-o", "/nowhere/x"}, {"/nowhere/x"}},
        Refusal{"bandwidth_without_peak", {"baseline", "--peak-bw", "100"}, {"--peak-bw", "--peak-tflops"}},
        Refusal{
            "peak_without_bandwidth", {"baseline", "--peak-tflops", "100"}, {"--peak-bw", "--peak-tflops"}},
        Refusal{"peaks_and_card",
                {"baseline", "--peak-bw", "1", "--peak-tflops", "1", "--card", "h200"},
                {"--card"}},
        Refusal{"baseline_n_0", {"baseline", "--n", "0"}, {"--n"}},
        Refusal{"baseline_predict_0", {"baseline", "--n", "64", "--predict", "0"}, {"--predict"}},
        Refusal{"baseline_unknown_card", {"baseline", "--card", "h2000"}, {"h2000"}}),
    [](const auto& each) { return std::string(each.param.name); });

TEST(RefusedOutput, LeavesNothingBehind) {
  const TemporaryFolder folder;
  std::ofstream(folder / "file") << "x";
  for (const std::string& path : {folder / "none/result", folder / "file/result", folder / "."}) {
    expect_refused(run("models --output " + path), path);
    expect_refused(run("estimate " + kTiny + " --card h200 --output " + path), path);
    EXPECT_EQ(folder.names(), std::vector<std::string>{"file"}) << path;
  }
}

TEST(RefusedOutput, AWrongInputMakesNoFile) {
  const TemporaryFolder folder;
  expect_refused(run("estimate nothing-like-it --card h200 --output " + (folder / "result")), "model");
  expect_refused(run("estimate " + kTiny + " --card nope --output " + (folder / "result")), "card");
  expect_refused(run("measure " + kMixed + " --memory 1MiB --output " + (folder / "result")), "memory");
  expect_refused(
      run("estimate " + kHuge + " --card h200 --context 1000000000 --output " + (folder / "result")), "huge");
  EXPECT_TRUE(folder.names().empty());
}

TEST(RefusedModel, NamesFileLineAndColumn) {
  const TemporaryFolder folder;
  std::ofstream(folder / "bad.yaml") << "name: bad\nlayers:\n  - atention: {heads: 4, head_dim: 16}\n";
  const Finished done = run("inspect " + (folder / "bad.yaml"));
  expect_refused(done, "bad.yaml");
  EXPECT_THAT(done.err, HasSubstr((folder / "bad.yaml") + ":3:5: "));
  EXPECT_THAT(done.err, HasSubstr("attention"));
}

}  // namespace
}  // namespace memwall
