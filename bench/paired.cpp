#include "bench/paired.h"

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>

#include "bench/cpu_device.h"
#include "bench/statistics.h"
#include "kernels/cpu/instruction_sets.h"
#include "kernels/cpu/panel_layout.h"

namespace memwall::benchmarks {
namespace {

constexpr int kIterations = 3;  // a repetition; the cases take turns between repetitions

std::unique_ptr<Device> open_with_chosen_set() {
  if (const char* set = std::getenv("MEMWALL_INSTRUCTION_SET")) cpu::use_instruction_set(set);
  return make_cpu_device();
}

std::string with_interval(const Summary& summary, const char* format) {
  const auto number = [&](double value) { return fmt::format(fmt::runtime(format), value); };
  std::string text = number(summary.median);
  if (summary.ci95) text += fmt::format(" ({}-{})", number(summary.ci95->low), number(summary.ci95->high));
  return text;
}

}  // namespace

Rig::Rig() : device(open_with_chosen_set()), context(cpu_context(*device)), ceiling(*device) {}

struct Suite::Entry {
  Case what;
  std::unique_ptr<Operands> operands;
  std::int64_t turn = 0;
  std::vector<double> seconds;  // a launch
  std::vector<double> ceilings;
  std::vector<double> shares;
  std::vector<double> peak_shares;
  std::vector<double> speeds;
};

void Suite::add(Case added) {
  auto made = std::make_shared<Entry>();
  made->what = std::move(added);
  entries_.push_back(made);
}

void Suite::add(const std::string& name, const Task& task, const std::string& variant, bool rotate,
                const std::string& beside) {
  const std::vector<Variant> variants = rig_.device->variants(task);
  const auto found = std::find_if(variants.begin(), variants.end(), [&](const Variant& v) {
    return v.name == variant || (variant.empty() && variants.size() == 1);
  });
  if (found == variants.end()) throw std::invalid_argument(name + ": the device has no variant " + variant);
  const std::int64_t copy_bytes = rig_.device->footprint(task).copy_bytes;
  const std::int64_t copies = (kLeastBytes + copy_bytes - 1) / copy_bytes;
  add({.name = name,
       .place = [task, copies](Rig& rig) { return rig.device->place(task, copies, 1); },
       .variant = static_cast<std::size_t>(found - variants.begin()),
       .launches = rotate ? copies : 1,
       .beside = beside});
}

Suite::Entry& Suite::entry(const std::string& name) {
  for (const auto& e : entries_) {
    if (e->what.name == name) return *e;
  }
  throw std::invalid_argument("there is no case " + name);
}

Operands& Suite::placed(Entry& entry) {
  if (entry.operands == nullptr) {
    entry.operands = entry.what.place(rig_);
    if (!entry.operands->check(entry.what.variant).passed()) {
      throw std::runtime_error(entry.what.name + ": the result is wrong");
    }
  }
  return *entry.operands;
}

void Suite::measure(Entry& entry, void* state) {
  auto& google = *static_cast<benchmark::State*>(state);
  Operands& operands = placed(entry);
  Entry* const beside = entry.what.beside.empty() ? nullptr : &this->entry(entry.what.beside);
  if (beside != nullptr) placed(*beside);
  const auto launch_seconds = [&](Entry& timed) {
    const double seconds = rig_.device->time([&] {
      for (std::int64_t i = 0; i < timed.what.launches; ++i) {
        timed.operands->launch(timed.what.variant, timed.turn + i);
      }
    });
    timed.turn += timed.what.launches;
    return seconds / static_cast<double>(timed.what.launches);
  };
  const double bytes = operands.cold_bytes(0);
  const double flops = operands.flops(0);
  const std::size_t first = entry.seconds.size();
  launch_seconds(entry);  // its activations and code may have left the caches since its last repetition
  for (auto _ : google) {
    const double other = beside != nullptr ? launch_seconds(*beside) : 0;
    const double peak = sample_fma_peak(rig_.context.pool);
    const double before = rig_.ceiling.sample();
    const double seconds = launch_seconds(entry);
    const double ceiling = (before + rig_.ceiling.sample()) / 2;
    google.SetIterationTime(seconds * static_cast<double>(entry.what.launches));
    entry.seconds.push_back(seconds);
    entry.ceilings.push_back(ceiling / 1e9);
    entry.shares.push_back(bytes / seconds / ceiling * 100);
    entry.peak_shares.push_back(flops / seconds / peak * 100);
    if (beside != nullptr) entry.speeds.push_back(other / seconds);
  }
  const auto of_repetition = [first](const std::vector<double>& all) {
    return summarize(std::span(all).subspan(first));
  };
  const double seconds = of_repetition(entry.seconds).median;
  google.counters["GB/s"] = bytes / seconds / 1e9;
  google.counters["read_GB/s"] = of_repetition(entry.ceilings).median;
  google.counters["%read"] = of_repetition(entry.shares).median;
  google.counters["GFLOP/s"] = flops / seconds / 1e9;
  google.counters["%fma"] = of_repetition(entry.peak_shares).median;
  if (beside != nullptr) google.counters["speed"] = of_repetition(entry.speeds).median;
}

void Suite::print_table() const {
  fmt::print("\n{}, {} threads, {}, {}; medians over all repetitions with their 95 % intervals\n",
             rig_.device->info().name, rig_.device->info().threads, rig_.device->info().instruction_set,
             rig_.device->info().blas);
  fmt::print("{:<28} {:>4} {:>9} {:>6} {:>9} {:>22} {:>8} {:>19} {:>21}\n", "case", "n", "ms", "GB/s",
             "read GB/s", "% of read", "GFLOP/s", "% of FMA peak", "speed");
  for (const auto& e : entries_) {
    if (e->seconds.empty()) continue;
    const double seconds = summarize(e->seconds).median;
    const std::string speed =
        e->speeds.empty() ? "" : with_interval(summarize(e->speeds), "{:.3f}") + " of " + e->what.beside;
    fmt::print("{:<28} {:>4} {:>9.3f} {:>6.1f} {:>9.1f} {:>22} {:>8.1f} {:>19}  {}\n", e->what.name,
               e->seconds.size(), seconds * 1e3, e->operands->cold_bytes(0) / seconds / 1e9,
               summarize(e->ceilings).median, with_interval(summarize(e->shares), "{:.1f}"),
               e->operands->flops(0) / seconds / 1e9, with_interval(summarize(e->peak_shares), "{:.1f}"),
               speed);
  }
}

int Suite::run(int argc, char** argv) {
  // Defaults that the command line may override: the last one counts.
  std::string shuffled = "--benchmark_enable_random_interleaving=true";
  std::string repetitions = "--benchmark_repetitions=7";
  std::string aggregates = "--benchmark_display_aggregates_only=true";
  std::vector<char*> arguments{argv[0], shuffled.data(), repetitions.data(), aggregates.data()};
  arguments.insert(arguments.end(), argv + 1, argv + argc);
  int count = static_cast<int>(arguments.size());
  arguments.push_back(nullptr);
  benchmark::Initialize(&count, arguments.data());
  if (benchmark::ReportUnrecognizedArguments(count, arguments.data())) return 2;
  for (const auto& e : entries_) {
    benchmark::RegisterBenchmark(e->what.name.c_str(),
                                 [this, e](benchmark::State& state) { measure(*e, &state); })
        ->UseManualTime()
        ->Iterations(kIterations)
        ->Unit(benchmark::kMillisecond);
  }
  benchmark::RunSpecifiedBenchmarks();
  print_table();
  return 0;
}

int run_suite(int argc, char** argv, const std::function<void(Suite&)>& add_cases) {
  try {
    Rig rig;
    Suite suite(rig);
    add_cases(suite);
    return suite.run(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}: {}\n", argv[0], error.what());
    return 1;
  }
}

LinearWork large_linear(const std::string& format, std::int64_t in) {
  const Format found = find_format(format).value();
  const std::int64_t panel_bytes = storage_bytes(found, cpu::kPanelRows, in);
  return {.out = (kLeastBytes + panel_bytes - 1) / panel_bytes * cpu::kPanelRows, .in = in, .format = found};
}

}  // namespace memwall::benchmarks
