// scripts/gpu-check.sh against the fake CUDA module and a tiny model.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "paths.h"
#include "tests/cli/process.h"

namespace memwall {

inline constexpr const char* kGpuCheck = MEMWALL_SOURCE_DIR "/scripts/gpu-check.sh";

// The real tests, of those few that a small machine runs.
inline const std::string kSmokeTests =
    "case $1 in *=CudaGpuSmoke*) exec '" MEMWALL_GPU_TESTS "' \"$@\" ;; esac\n";

// A folder that looks like a build: the real memwall, a small model, and a program for the tests that need a
// GPU, which says what GoogleTest would.
class ScriptGpuCheck : public ::testing::Test {
 protected:
  ScriptGpuCheck() {
    std::filesystem::create_directory(folder_ / "build");
    std::filesystem::create_directory(folder_ / "build/tests");
    std::filesystem::create_symlink(MEMWALL_EXECUTABLE, folder_ / "build/memwall");
    tests_say("echo '[       OK ] CudaGpu.Works (1 ms)'");
    write_text(folder_ / "tiny.yaml",
               "name: tiny\nhidden_size: 32\nlayers:\n  - repeat: 1\n    attention: {heads: 2, kv_heads: 1, "
               "head_dim: 16}\n"
               "    mlp: {intermediate: 32}\n");
  }

  void memwall_says(const std::string& commands) {
    std::filesystem::remove(folder_ / "build/memwall");  // a link
    program("build/memwall", commands);
  }
  void tests_say(const std::string& commands) { program("build/tests/memwall_gpu_tests", commands); }
  void program(const std::string& name, const std::string& commands) {
    write_text(folder_ / name, "#!/bin/bash\n" + commands + "\n");
    std::filesystem::permissions(folder_ / name, std::filesystem::perms::owner_all);
  }

  // On a machine of tests/cuda/fake_module.cpp, with limits that no slow machine reaches.
  std::vector<std::string> command(const std::string& machine,
                                   const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words = {"env", "MEMWALL_CUDA_MODULE=" MEMWALL_FAKE_CUDA,
                                      "MEMWALL_FAKE_MACHINE=" + machine, "bash", kGpuCheck};
    const auto add = [&](const std::vector<std::string>& some) {
      words.insert(words.end(), some.begin(), some.end());
    };
    add({"--build", folder_ / "build", "--model", folder_ / "tiny.yaml"});
    add({"--weights", "bf16", "--batch", "1", "--context", "16"});
    for (const char* part : {"facts", "devices", "smoke", "sanitizer", "gpu-tests"})
      add({"--limit", part + std::string("=120")});
    add(more);
    add({folder_ / "out"});
    return words;
  }
  Finished check(const std::string& machine, std::vector<std::string> more = {}) const {
    return Process(command(machine, std::move(more))).wait();
  }

  // "PART: OUTCOME" of each line of steps.tsv in the results' archive.
  std::vector<std::string> archived_steps() const {
    std::vector<std::string> steps;
    for (const std::string& line : lines_of(from_archive("steps.tsv"))) {
      const std::size_t first = line.find('\t');
      steps.push_back(line.substr(0, first) + ": " + line.substr(first + 1, line.rfind('\t') - first - 1));
    }
    return steps;
  }
  std::string from_archive(const std::string& name) const {
    const Finished tar = Process({"tar", "-xOzf", folder_ / "out.tar.gz", "out/" + name}).wait();
    return tar.status == 0 ? tar.out : "(none)";
  }

  // Until the archive's steps say so; false where they never do.
  bool wait_for_step(const std::string& beginning) const {
    return wait_until([&] {
      for (const std::string& step : archived_steps())
        if (step.rfind(beginning, 0) == 0) return true;
      return false;
    });
  }
  static bool wait_until(const std::function<bool()>& holds) {
    for (int i = 0; i < 600; ++i) {
      if (holds()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    return false;
  }

  TemporaryFolder folder_;
};

}  // namespace memwall
