#include "tests/cuda/ptxas.h"

#include <cxxabi.h>
#include <fmt/format.h>

#include <cstdlib>
#include <memory>
#include <sstream>

namespace memwall::cuda {
namespace {

constexpr int kRegisters = 65536;
constexpr int kMostRegisters = 255;
constexpr int kWarpUnit = 256;

std::string demangled(const std::string& name) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), &std::free);
  return status == 0 ? text.get() : name;
}

// What follows `before` in the text, up to `after`; empty where they are not there.
std::string_view between(std::string_view text, std::string_view before, std::string_view after) {
  const auto start = text.find(before);
  if (start == std::string_view::npos) return {};
  text.remove_prefix(start + before.size());
  const auto end = text.find(after);
  return end == std::string_view::npos ? std::string_view() : text.substr(0, end);
}

int number(std::string_view text) { return std::atoi(std::string(text).c_str()); }

// Of "void memwall::cuda::entry<Kernel<...>, 256u>(...)".
int threads_of(std::string_view name) {
  const auto end = name.find("u>(");
  const auto start = name.rfind(", ", end);
  if (end == std::string_view::npos || start == std::string_view::npos) return 0;
  return number(name.substr(start + 2, end - start - 2));
}

}  // namespace

std::vector<KernelUse> parse_ptxas(std::string_view report) {
  std::vector<KernelUse> uses;
  std::istringstream lines{std::string(report)};
  for (std::string line; std::getline(lines, line);) {
    if (const auto entry = between(line, "Compiling entry function '", "'"); !entry.empty()) {
      KernelUse use;
      use.name = demangled(std::string(entry));
      use.architecture = between(line, "' for '", "'");
      use.threads = threads_of(use.name);
      uses.push_back(use);
    } else if (uses.empty()) {
      continue;
    } else if (const auto stack = between(line, "    ", " bytes stack frame, "); !stack.empty()) {
      uses.back().stack_bytes += number(stack);
      uses.back().spill_store_bytes += number(between(line, "stack frame, ", " bytes spill stores"));
      uses.back().spill_load_bytes += number(between(line, "spill stores, ", " bytes spill loads"));
    } else if (const auto registers = between(line, "Used ", " registers"); !registers.empty()) {
      uses.back().registers = number(registers);
    }
  }
  return uses;
}

std::vector<std::string> faults_of(const KernelUse& use, int blocks) {
  std::vector<std::string> faults;
  const auto fault = [&](const std::string& what) {
    faults.push_back(fmt::format("{} of {}: {}", use.name, use.architecture, what));
  };
  if (use.spill_store_bytes > 0 || use.spill_load_bytes > 0) {
    fault(fmt::format("spills {} bytes and loads {} of them", use.spill_store_bytes, use.spill_load_bytes));
  }
  if (use.stack_bytes > 0) fault(fmt::format("has a stack frame of {} bytes", use.stack_bytes));
  if (use.registers == 0) fault("its registers are not told");
  if (use.threads == 0) fault("its threads are not told");
  const int warps = (use.threads + 31) / 32;
  const int a_warp = (use.registers * 32 + kWarpUnit - 1) / kWarpUnit * kWarpUnit;
  if (use.registers > kMostRegisters || blocks * warps * a_warp > kRegisters) {
    fault(fmt::format("{} threads of {} registers are more than a multiprocessor has", blocks * use.threads,
                      use.registers));
  }
  return faults;
}

}  // namespace memwall::cuda
