// scripts/gpu-check.sh against the fake CUDA module and a tiny model: what it runs, records and leaves,
// whatever fails.
#include "tests/scripts/gpu_check.h"

#include <gmock/gmock.h>

#include <map>
#include <nlohmann/json.hpp>
#include <regex>

namespace memwall {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;
using ::testing::StartsWith;

TEST_F(ScriptGpuCheck, RunsEveryPartInOrder) {
  tests_say(kSmokeTests + "echo '[       OK ] CudaGpu.Works (1 ms)'");
  fs::create_directory(folder_ / "bin");
  program("bin/compute-sanitizer", "shift 6; exec \"$@\"");
  ::setenv("CUDA_HOME", folder_.path().c_str(), 1);
  const Finished done = check("executes");
  ::unsetenv("CUDA_HOME");
  EXPECT_EQ(done.status, 0) << done.err;
  EXPECT_EQ(done.out, "");
  EXPECT_THAT(archived_steps(), ElementsAre("facts: passed", "devices: passed", "smoke: passed",
                                            "sanitizer: passed", "gpu-tests: passed", "measure: passed"));
  const auto measured = nlohmann::json::parse(from_archive("measure.json"));
  EXPECT_EQ(measured["device"]["name"], "Fake GPU");
  EXPECT_EQ(measured["decode"].size(), 1U);
  EXPECT_GT(measured["decode"][0]["measured"]["step"]["ms_per_step"].get<double>(), 0);
  const std::string summary = from_archive("summary.md");
  for (const char* part :
       {"| measure | passed |", "## Ceilings", "## tiny, decode", "| bf16 | 16 | q_proj |"})
    EXPECT_THAT(summary, HasSubstr(part));
  EXPECT_THAT(from_archive("facts.log"), HasSubstr("glibc"));
  EXPECT_THAT(summary, Not(HasSubstr("cannot be shown")));
}

// It does not work on every machine that runs CUDA; but what it finds is a failure.
TEST_F(ScriptGpuCheck, TheSanitizerFailsOnlyByWhatItFinds) {
  memwall_says("exit 0");
  fs::create_directory(folder_ / "bin");
  ::setenv("CUDA_HOME", folder_.path().c_str(), 1);
  program("bin/compute-sanitizer", "exit 99");
  EXPECT_EQ(check("executes").status, 1);
  EXPECT_EQ(archived_steps()[3], "sanitizer: failed with status 99");
  program("bin/compute-sanitizer", "echo 'Device not supported'; exit 1");
  EXPECT_EQ(check("executes").status, 0);
  EXPECT_EQ(archived_steps()[3], "sanitizer: does not work here: failed with status 1");
  ::unsetenv("CUDA_HOME");
}

// What a run tells of ops, variants and steps that failed.
TEST_F(ScriptGpuCheck, TheSummaryNamesWhatFailed) {
  if (Process({"python3", "--version"}).wait().status != 0) GTEST_SKIP() << "there is no python3";
  fs::create_directory(folder_ / "out");
  write_text(folder_ / "out/steps.tsv", "measure\tfailed with status 1\t9\n");
  const auto page = [&](const std::string& measured) {
    write_text(folder_ / "out/measure.json", measured);
    return Process({"python3", MEMWALL_SOURCE_DIR "/scripts/gpu-summary.py", folder_ / "out"}).wait();
  };
  const Finished done = page(R"({"incomplete": true, "model": {"title": "Tiny"}, "warnings": ["hot"],
    "device": {"streams": [], "read_GBps": 9, "read_variant": "16 loads", "launch": null, "gpu": null,
      "peaks": {"bf16": {"GFLOPs": 2000, "median_GFLOPs": null, "by": "a library"}}},
    "decode": [{"batch": 8, "context": 16, "weights": "bf16",
      "measured": {"ms_per_step": 3, "partial": true, "step_failed": "the GPU was lost"},
      "ops": [{"name": "q_proj", "of_read_bandwidth": 0.5, "variant": "gemv",
               "variants": [{"name": "gemv", "us": 3}, {"name": "cublas 1", "us": null, "failed": "no | such arm"}]},
              {"name": "attention", "not_measured": true, "why": "an illegal access"},
              {"name": "router", "not_measured": true}]}]})");
  EXPECT_EQ(done.status, 0) << done.err;
  for (const char* line :
       {"| measure | failed with status 1 | 9 |", "read: 9 GB/s by 16 loads", "| bf16 | 2 |  | a library |",
        "The run was stopped", "| bf16 | 16 | 8 | 3 |  |  |  |  | partial; the GPU was lost |",
        "| bf16 | 16 | q_proj | 50 % gemv |", "| bf16 | 16 | attention | not measured: an illegal access |",
        "| bf16 | 16 | router | not measured |",
        "| cublas 1 | no \\| such arm | q_proj, bf16, batch 8, context 16 |", "- hot"})
    EXPECT_THAT(done.out, HasSubstr(line));
  // Half a result takes no other part of the page with it.
  const Finished half = page(R"({"device": {"read_GBps": 9}, "decode": [{"batch": 8}]})");
  EXPECT_EQ(half.status, 0) << half.err;
  EXPECT_THAT(half.out, HasSubstr("read: 9 GB/s"));
  EXPECT_THAT(half.out, HasSubstr("decode cannot be shown: KeyError"));
  EXPECT_EQ(page("{").status, 0);
}

// The first word is what fails, the others what stands in the table of steps.
TEST_F(ScriptGpuCheck, APartThatFailsStopsNoOther) {
  tests_say("case $1 in *=CudaGpuSmoke*) kill -SEGV $$ ;; *) exit 3 ;; esac");
  memwall_says("if [ \"$1\" = devices ]; then echo 'memwall: error: no luck' >&2; exit 1; fi");
  const Finished done = check("executes");
  EXPECT_EQ(done.status, 1);
  EXPECT_THAT(done.err, HasSubstr("memwall: error: no luck"));
  EXPECT_THAT(archived_steps(), ElementsAre("facts: passed", "devices: failed with status 1",
                                            "smoke: ended by SIGSEGV", StartsWith("sanitizer: not run"),
                                            "gpu-tests: failed with status 3", "measure: passed"));
  EXPECT_THAT(from_archive("summary.md"), HasSubstr("| smoke | ended by SIGSEGV |"));
}

// Faults of the machine under the real smoke test.
TEST_F(ScriptGpuCheck, TheSmokeTestFindsAGpuThatIsNotWell) {
  memwall_says("exit 0");
  tests_say(kSmokeTests + "echo '[       OK ] CudaGpu.Works (1 ms)'");
  const std::vector<std::pair<std::string, std::string>> faults = {
      {"wrong-at:AttentionKernel", "smoke: failed with status 1"},
      {"lost-at:FillKernel", "smoke: failed with status 1"},
      {"crashes-at:LinearKernel", "smoke: ended by SIGSEGV"},
      {"hangs-at:LinearKernel", "smoke: stopped at its limit of 2 s"},
      {"does-not-open", "smoke: failed with status 1"}};
  for (const auto& [fault, outcome] : faults) {
    const std::string limit = fault.rfind("hangs", 0) == 0 ? "smoke=2" : "smoke=120";
    EXPECT_EQ(check("executes," + fault, {"--limit", limit}).status, 1) << fault;
    EXPECT_THAT(archived_steps(),
                IsSupersetOf(std::vector<std::string>{outcome, "gpu-tests: passed", "measure: passed"}))
        << fault;
  }
}

// With no GPU that opens, all is tried, and the results say why.
TEST_F(ScriptGpuCheck, AGpuThatDoesNotOpenIsTold) {
  const Finished done = check("executes,does-not-open");
  EXPECT_EQ(done.status, 1);
  EXPECT_THAT(done.err, HasSubstr("busy or unavailable"));
  EXPECT_THAT(archived_steps(), IsSupersetOf({"devices: passed", "gpu-tests: passed"}));
  EXPECT_THAT(from_archive("measure.log"), HasSubstr("busy or unavailable"));
}

// On the day, a test that skips has tested nothing.
TEST_F(ScriptGpuCheck, TestsThatSkipHaveFailed) {
  const std::string skip =
      "echo 'a.cpp:7: Skipped'; echo 'REASON'; echo; echo '[  SKIPPED ] CudaGpu.Is (0 ms)'; ";
  memwall_says("exit 0");
  const std::string works = "echo '[       OK ] CudaGpu.Works (1 ms)'";
  const auto outcome_of = [&](const std::string& commands) {
    tests_say(commands);
    check("executes");
    return archived_steps()[4];
  };
  EXPECT_EQ(outcome_of(std::regex_replace(skip, std::regex("REASON"), "CUDA sees no device") + works),
            "gpu-tests: failed: skipped 1, the first CudaGpu.Is (CUDA sees no device)");
  EXPECT_EQ(outcome_of(std::regex_replace(skip, std::regex("REASON"), "no cuBLAS: it was not found") + works),
            "gpu-tests: passed");
  EXPECT_EQ(outcome_of("exit 0"), "gpu-tests: failed: no test ran");
}

TEST_F(ScriptGpuCheck, WithoutAGpuItSaysSoOnceAndInTheResults) {
  if (fs::exists("/dev/nvidia0") || fs::exists("/dev/dxg")) GTEST_SKIP() << "there is an NVIDIA device here";
  const Finished done =
      Process({"env", "-u", "MEMWALL_CUDA_MODULE", "PATH=/usr/bin:/bin", "bash", kGpuCheck, folder_ / "out"})
          .wait();
  EXPECT_EQ(done.status, 2);
  EXPECT_EQ(done.out, "");
  ASSERT_EQ(lines_of(done.err).size(), 1U) << done.err;
  EXPECT_THAT(done.err, HasSubstr("there is no NVIDIA GPU here"));
  ASSERT_EQ(archived_steps().size(), 1U);
  EXPECT_THAT(archived_steps()[0], StartsWith("machine: failed: there is no NVIDIA GPU here"));
  EXPECT_THAT(from_archive("summary.md"), HasSubstr("there is no NVIDIA GPU here"));
}

TEST_F(ScriptGpuCheck, ABundleThatNeedsANewerGlibcSaysSo) {
  fs::create_directory(folder_ / "bundle");
  fs::create_directory(folder_ / "bundle/bin");
  for (const char* script : {"gpu-check.sh", "gpu-parts.sh", "gpu-summary.py", "dependencies.sh"})
    fs::copy(std::string(MEMWALL_SOURCE_DIR "/scripts/") + script, folder_ / "bundle");
  program("bundle/bin/memwall", "exit 127");
  write_text(folder_ / "bundle/glibc", "9.99\n");
  const auto bundle = [&] {
    return Process({"env", "MEMWALL_CUDA_MODULE=" MEMWALL_FAKE_CUDA, "MEMWALL_FAKE_MACHINE=executes", "bash",
                    folder_ / "bundle/gpu-check.sh", folder_ / "out"})
        .wait();
  };
  Finished done = bundle();
  EXPECT_EQ(done.status, 2);
  ASSERT_EQ(lines_of(done.err).size(), 1U) << done.err;
  EXPECT_THAT(done.err, HasSubstr("this bundle needs glibc 9.99, and here is "));
  EXPECT_THAT(archived_steps()[0], HasSubstr("needs glibc 9.99"));
  write_text(folder_ / "bundle/glibc", "2.2\n");
  program("bundle/bin/memwall", "echo 'libfmt.so.9: cannot open' >&2; exit 127");
  done = bundle();
  EXPECT_EQ(done.status, 2);
  EXPECT_THAT(archived_steps()[0], HasSubstr("does not start: libfmt.so.9: cannot open"));
}

TEST_F(ScriptGpuCheck, MakesADryRunOnTheCpu) {
  memwall_says("echo \"$@\"");
  const Finished done =
      Process({"bash", kGpuCheck, "--cpu", "--build", folder_ / "build", folder_ / "out"}).wait();
  EXPECT_EQ(done.status, 0) << done.err;
  EXPECT_THAT(archived_steps(), ElementsAre("facts: passed", "devices: passed", "measure: passed"));
  EXPECT_THAT(from_archive("measure.log"),
              HasSubstr("measure smollm2-135m --device cpu --weights bf16,f8_e4m3,q4_0"));
}

TEST(ScriptGpuCheckArguments, RefusesWrongOnes) {
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{},
                                             {"--cpu"},
                                             {"--gpu", "out"},
                                             {"--build"},
                                             {"a", "b"},
                                             {""},
                                             {"--limit", "smoke=0", "out"},
                                             {"--limit", "lunch=9", "out"}}) {
    std::vector<std::string> words = {"bash", kGpuCheck};
    words.insert(words.end(), arguments.begin(), arguments.end());
    const Finished done = Process(words).wait();
    EXPECT_EQ(done.status, 2);
    EXPECT_THAT(done.err, HasSubstr("usage: "));
  }
}

// The seconds a part of `text`, found by `pattern`: its name, and its limit.
std::map<std::string, int> limits_of(const std::string& text, const std::regex& pattern) {
  std::map<std::string, int> limits;
  for (std::sregex_iterator found(text.begin(), text.end(), pattern); found != std::sregex_iterator();
       ++found)
    limits[(*found)[1]] = std::stoi((*found)[2]);
  return limits;
}

TEST(ScriptGpuCheckLimits, AreThoseOfTheDocumentAndEndWithinEightMinutes) {
  const auto script = limits_of(content_of(kGpuCheck), std::regex("\n  \\[([a-z-]+)\\]=([0-9]+)"));
  const auto document = limits_of(content_of(MEMWALL_SOURCE_DIR "/docs/cuda.md"),
                                  std::regex("\n\\| `([a-z-]+)` \\| ([0-9]+) \\|"));
  EXPECT_EQ(script, document);
  const auto graces = limits_of(content_of(kGpuCheck), std::regex("graces=\\(\\[([a-z-]+)\\]=([0-9]+)\\)"));
  ASSERT_EQ(graces.size(), 1U);
  int sum = 5;  // the page
  for (const auto& [part, seconds] : script) {
    if (part == "configure" || part == "build") continue;  // not where a bundle is run
    sum += seconds + (graces.count(part) > 0 ? graces.at(part) : 2);
  }
  EXPECT_GT(sum, 100);
  EXPECT_LE(sum, 470);
}

// Without a toolkit, or with a wrong argument, nothing is built.
TEST(ScriptGpuBundle, RefusesWrongArguments) {
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {"--arch", "hopper"}, {"--arch"}, {"--output", "bundle.zip"}, {"out"}}) {
    std::vector<std::string> words = {"bash", MEMWALL_SOURCE_DIR "/scripts/gpu-bundle.sh"};
    words.insert(words.end(), arguments.begin(), arguments.end());
    const Finished done = Process(words).wait();
    EXPECT_EQ(done.status, 2);
    EXPECT_THAT(done.err, HasSubstr("usage: "));
  }
}

}  // namespace
}  // namespace memwall
