#include <fmt/format.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <set>

#include "cuda/device.h"
#include "tests/cuda/fake_gpu.h"
#include "tests/cuda/races/races.h"

// The sanitizer's hooks: called for each report; and its options, by which the program's own exit code stays.
namespace {
std::atomic<int> reports{0};
}
extern "C" void __tsan_on_report(void*);
extern "C" void __tsan_on_report(void*) { ++reports; }
extern "C" const char* __tsan_default_options();
extern "C" const char* __tsan_default_options() { return "exitcode=0:suppress_equal_addresses=0"; }

namespace memwall::cuda {

int races_reported() { return reports; }

namespace {

// Every variant of the task once. False where the thread sanitizer or the executor objects.
bool passes(const NamedTask& named, std::set<std::string>& kernels) {
  const int before = races_reported();
  auto owned = std::make_unique<FakeGpu>();
  FakeGpu& gpu = *owned;
  gpu.executor().settings().count_traffic = false;
  gpu.library = true;  // whose narrow products have kernels of ours beside them
  const std::unique_ptr<Device> device = make_device(std::move(owned));
  try {
    const std::size_t variants = device->variants(named.task).size();
    if (variants == 0) {
      fmt::print("{}: no kernel\n", named.name);
      return true;
    }
    const std::unique_ptr<Operands> operands = device->place(named.task, 1, 1);
    for (std::size_t v = 0; v < variants; ++v) operands->launch(v, 0);
  } catch (const std::exception& error) {
    fmt::print("{}: {}\n", named.name, error.what());
    return false;
  }
  for (const auto& [kernel, launches] : gpu.kernels()) kernels.insert(kernel.name());
  if (races_reported() == before) return true;
  fmt::print("{}: {} races\n", named.name, races_reported() - before);
  return false;
}

bool all_pass() {
  bool pass = true;
  std::set<std::string> kernels;
  const std::vector<NamedTask> tasks = race_tasks();
  for (const NamedTask& task : tasks) pass = passes(task, kernels) && pass;
  fmt::print("{} kernels in {} tasks: {}\n", kernels.size(), tasks.size(), pass ? "no races" : "FAILED");
  return pass;
}

}  // namespace
}  // namespace memwall::cuda

int main(int count, char** words) {
  const bool planted = count > 1 && std::strcmp(words[1], "--planted") == 0;
  const bool good = planted ? memwall::cuda::planted_races_are_found() : memwall::cuda::all_pass();
  return good ? 0 : 1;
}
