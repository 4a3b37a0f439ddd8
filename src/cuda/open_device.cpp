#include "cuda/open_device.h"

#include <fmt/format.h>

#include "cuda/card_match.h"
#include "cuda/device.h"
#include "cuda/load.h"
#include "input/error.h"
#include "input/numbers.h"

namespace memwall {
namespace {

constexpr int kMostIndex = 9999;  // of a GPU; more digits are a slip

bool asks_for_cpus(const CpuSettings& cpu) {
  return cpu.choice.threads != 0 || !cpu.choice.cpus.empty() || cpu.numa != NumaPolicy::local;
}

// "1 device, cuda:0", "4 devices, cuda:0 to cuda:3".
std::string devices_text(int count) {
  return count == 1 ? "1 device, cuda:0" : fmt::format("{} devices, cuda:0 to cuda:{}", count, count - 1);
}

std::unique_ptr<Device> open_gpu(cuda::Runtime& runtime, int index, const DeviceSources& sources) {
  std::unique_ptr<cuda::Gpu> gpu = runtime.open(index);
  const std::optional<cuda::CardMatch> card = cuda::match_card(gpu->properties(), all_cards());
  const cuda::Versions versions = runtime.versions();
  if (!versions.no_cublas.empty())
    sources.notice(fmt::format("no cuBLAS: {}; memwall's own kernels run without it", versions.no_cublas));
  return cuda::make_device(std::move(gpu), versions, card);
}

std::unique_ptr<Device> open_cuda(int index, const DeviceSources& sources) {
  std::unique_ptr<cuda::Runtime> runtime;
  int count = 0;
  try {
    runtime = sources.load_runtime();
    count = runtime->device_count();
  } catch (const RunError& error) {
    throw InputError(fmt::format("--device cuda:{}: {}", index, error.what()));
  }
  if (count == 0) throw InputError(fmt::format("--device cuda:{}: there is no CUDA device", index));
  if (index >= count)
    throw InputError(fmt::format("--device cuda:{}: there is no such device; this machine has {}", index,
                                 devices_text(count)));
  return open_gpu(*runtime, index, sources);
}

std::unique_ptr<Device> open_any(const CpuSettings& cpu, const DeviceSources& sources) {
  std::string why;
  bool expected = true;  // a GPU, by whoever built memwall or the machine
  try {
    const std::unique_ptr<cuda::Runtime> runtime = sources.load_runtime();
    if (runtime->device_count() > 0) return open_gpu(*runtime, 0, sources);
    why = "there is no CUDA device";
  } catch (const cuda::NoModule& error) {
    expected = sources.nvidia_here();
    why = error.what();
  } catch (const RunError& error) {
    why = error.what();
  }
  if (expected) sources.notice(fmt::format("{}; this runs on the CPU", why));
  return make_cpu_device(cpu);
}

}  // namespace

DeviceChoice parse_device(const std::string& word) {
  if (word == "auto") return {};
  if (word == "cpu") return {.kind = DeviceChoice::Kind::cpu};
  constexpr std::string_view kPrefix = "cuda:";
  if (word.rfind(kPrefix, 0) == 0) {
    const std::string_view number = std::string_view(word).substr(kPrefix.size());
    if (is_plain_integer(number) && number.front() != '-' && number.size() <= 4)
      return {.kind = DeviceChoice::Kind::cuda,
              .index = static_cast<int>(parse_integer(number, "--device", {0, kMostIndex}))};
  }
  throw InputError(fmt::format(
      "--device: '{}' is no device; it is auto, cpu or cuda:N, N being 0 for the first GPU", word));
}

DeviceSources device_sources(std::function<void(const std::string&)> notice) {
  return {.load_runtime = cuda::load_runtime,
          .nvidia_here = [] { return cuda::nvidia_here(); },
          .notice = std::move(notice)};
}

std::unique_ptr<Device> open_device(const std::string& word, const CpuSettings& cpu,
                                    const DeviceSources& sources) {
  const DeviceChoice choice = parse_device(word);
  switch (choice.kind) {
    case DeviceChoice::Kind::cpu:
      return make_cpu_device(cpu);
    case DeviceChoice::Kind::cuda:
      if (asks_for_cpus(cpu))
        throw InputError(
            fmt::format("--device {}: --threads, --cpus and --numa are the CPU's; leave them out", word));
      return open_cuda(choice.index, sources);
    case DeviceChoice::Kind::automatic:
      break;
  }
  return asks_for_cpus(cpu) ? make_cpu_device(cpu) : open_any(cpu, sources);
}

}  // namespace memwall
