#include "report/devices.h"

#include <fmt/format.h>

#include "format/units.h"

namespace memwall {
namespace {

using cuda::GpuProperties;

Json text_or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

std::string device_name(const FoundGpu& gpu) { return fmt::format("cuda:{}", gpu.properties.index); }

std::string capability(const GpuProperties& gpu) {
  return fmt::format("{}.{}", gpu.arch.major, gpu.arch.minor);
}

std::string mib(std::int64_t bytes) {
  return bytes > 0 ? fmt::format("{} MiB", significant(static_cast<double>(bytes) / kMiB, 3)) : "unknown";
}

std::string numa_word(NumaPolicy policy) { return policy == NumaPolicy::local ? "local" : "interleave"; }

Json cpu_row(const DeviceInfo& cpu) {
  Json json;
  json["device"] = "cpu";
  json["kind"] = "cpu";
  json["name"] = cpu.name;
  json["threads"] = cpu.threads;
  json["cpus"] = cpu.cpus;
  json["cores"] = cpu.cores;
  json["pinned"] = cpu.pinned;
  json["numa"] = {{"policy", numa_word(cpu.numa)}, {"nodes", cpu.numa_nodes}};
  json["instruction_set"] = cpu.instruction_set;
  json["blas"] = text_or_null(cpu.blas);
  json["l1d_bytes"] = cpu.l1d_bytes;
  json["l2_bytes"] = cpu.l2_bytes;
  json["last_level_bytes"] = cpu.last_level_bytes;
  json["free_bytes"] = cpu.available_bytes;
  return json;
}

Json gpu_row(const FoundGpu& gpu) {
  const GpuProperties& p = gpu.properties;
  const bool opens = gpu.does_not_open.empty();
  Json json;
  json["device"] = device_name(gpu);
  json["kind"] = "cuda";
  json["name"] = p.name;
  json["pci_id"] = p.pci_id;
  json["compute_capability"] = capability(p);
  json["multiprocessors"] = p.multiprocessors;
  json["memory_bytes"] = p.total_bytes;
  json["free_bytes"] = opens ? Json(gpu.free_bytes) : Json(nullptr);
  json["l2_bytes"] = p.l2_bytes;
  json["sm_clock_MHz"] = number(p.sm_clock_kHz / 1e3);
  json["memory_clock_MHz"] = number(p.memory_clock_kHz / 1e3);
  json["memory_bus_bits"] = p.memory_bus_bits;
  const double peak = cuda::peak_GBps(p);
  json["peak_GBps"] = peak > 0 ? number(peak) : Json(nullptr);
  json["ecc"] = p.ecc;
  json["integrated"] = p.integrated;
  const bool known = gpu.card && !gpu.card->from_attributes;
  json["card"] = known ? Json(gpu.card->card.name) : Json(nullptr);
  json["does_not_open"] = text_or_null(gpu.does_not_open);
  const bool now = opens && gpu.clocks.available;
  // NVML may be there and not tell some of these: then they are 0.
  const auto told = [&](auto value) { return now && value > 0 ? Json(value) : Json(nullptr); };
  json["now"] = {{"sm_clock_MHz", told(gpu.clocks.sm_MHz)},
                 {"memory_clock_MHz", told(gpu.clocks.memory_MHz)},
                 {"temperature_C", told(gpu.clocks.temperature_C)},
                 {"power_W", told(gpu.clocks.power_W)},
                 {"slowed_by", now ? Json(gpu.clocks.slowed_by) : Json(nullptr)}};
  json["driver"] = text_or_null(gpu.clocks.driver_version);
  return json;
}

std::string cpu_text(const DeviceInfo& cpu, const Style& style) {
  std::string text = style.apply(Tone::bold, "cpu") + "     " + cpu.name + "\n";
  text += fmt::format("        {}, {}, {}\n", threads_text(cpu), cpu.instruction_set,
                      cpu.blas.empty() ? "no BLAS" : cpu.blas);
  text += fmt::format("        last-level cache {}, memory {} free\n", mib(cpu.last_level_bytes),
                      human_gib(static_cast<double>(cpu.available_bytes)));
  return text;
}

std::string card_text(const FoundGpu& gpu) {
  if (!gpu.card) return "no card of `memwall cards`, and too little is known of it for peaks of its own";
  if (gpu.card->from_attributes) return "no card of `memwall cards`: its peaks are made of the figures above";
  return "card " + gpu.card->card.name;
}

std::string gpu_text(const FoundGpu& gpu, const Style& style) {
  const GpuProperties& p = gpu.properties;
  std::string text = style.apply(Tone::bold, fmt::format("{:<7}", device_name(gpu))) + " " + p.name + "\n";
  text +=
      fmt::format("        compute capability {}, {} multiprocessors at {} MHz at most, PCI {}\n",
                  capability(p), p.multiprocessors, fmt::format("{:.0f}", p.sm_clock_kHz / 1e3), p.pci_id);
  text += fmt::format("        memory {}", human_gib(static_cast<double>(p.total_bytes)));
  if (gpu.does_not_open.empty())
    text += fmt::format(", {} free", human_gib(static_cast<double>(gpu.free_bytes)));
  if (const double peak = cuda::peak_GBps(p); peak > 0) {
    text += fmt::format(", {} bits at {} MHz: {} GB/s", p.memory_bus_bits,
                        fmt::format("{:.0f}", p.memory_clock_kHz / 1e3), significant(peak, 4));
  }
  text += fmt::format(", ECC {}{}, L2 {}\n", p.ecc ? "on" : "off", p.integrated ? ", the system's own" : "",
                      mib(p.l2_bytes));
  text += "        " + card_text(gpu) + "\n";
  if (!gpu.does_not_open.empty())
    return text + "        " + style.apply(Tone::bad, "does not open: " + gpu.does_not_open) + "\n";
  if (!gpu.clocks.available) {
    return gpu.clocks.why_not.empty() ? text : text + "        no clocks: " + gpu.clocks.why_not + "\n";
  }
  text += fmt::format("        now {} MHz, {} C, {} W", gpu.clocks.sm_MHz, gpu.clocks.temperature_C,
                      significant(gpu.clocks.power_W, 3));
  for (const std::string& reason : gpu.clocks.slowed_by)
    text += style.apply(Tone::warn, ", slowed by " + reason);
  return text + "\n";
}

std::string versions_text(const cuda::Versions& versions, const std::string& driver) {
  const std::string libraries =
      versions.no_cublas.empty() ? fmt::format("cuBLAS {}, cuBLASLt {}", versions.cublas, versions.cublasLt)
                                 : "no cuBLAS: " + versions.no_cublas;
  return fmt::format("CUDA {} (driver{} supports {}), {}\n", versions.runtime,
                     driver.empty() ? "" : " " + driver, versions.driver, libraries);
}

}  // namespace

std::string automatic_device(const FoundDevices& found) {
  return !found.gpus.empty() && found.gpus.front().does_not_open.empty() ? "cuda:0" : "cpu";
}

std::vector<Json> device_rows(const FoundDevices& found) {
  std::vector<Json> rows = {cpu_row(found.cpu)};
  for (const FoundGpu& gpu : found.gpus) rows.push_back(gpu_row(gpu));
  return rows;
}

Json devices_figures(const FoundDevices& found) {
  Json json;
  json["auto"] = automatic_device(found);
  json["devices"] = device_rows(found);
  Json& backend = json["cuda"];
  backend["available"] = !found.gpus.empty();
  backend["why_not"] = text_or_null(found.why_no_gpu);
  const cuda::Versions versions = found.versions.value_or(cuda::Versions{});
  backend["driver"] = text_or_null(versions.driver);
  backend["runtime"] = text_or_null(versions.runtime);
  backend["cublas"] = text_or_null(versions.cublas);
  backend["cublasLt"] = text_or_null(versions.cublasLt);
  backend["no_cublas"] = text_or_null(versions.no_cublas);
  return json;
}

std::string devices_text(const FoundDevices& found, const Style& style) {
  std::string text = cpu_text(found.cpu, style);
  for (const FoundGpu& gpu : found.gpus) text += "\n" + gpu_text(gpu, style);
  text += "\n";
  if (found.gpus.empty()) text += "no GPU: " + found.why_no_gpu + "\n";
  if (found.versions) {
    text +=
        versions_text(*found.versions, found.gpus.empty() ? "" : found.gpus.front().clocks.driver_version);
  }
  return text + "--device auto takes " + automatic_device(found) + "\n";
}

std::string threads_text(const DeviceInfo& info) {
  std::string text = fmt::format("{} thread{}{}", info.threads, info.threads == 1 ? "" : "s",
                                 info.pinned ? " pinned" : " not pinned");
  if (info.threads <= info.cores) {
    text += ", one a physical core";
  } else {
    text += fmt::format(" on {} physical core{}", info.cores, info.cores == 1 ? "" : "s");
  }
  text += fmt::format(" (CPU{} {})", info.cpus.size() == 1 ? "" : "s", cpu_list(info.cpus));
  if (info.numa_nodes > 1) {
    text += fmt::format(", {} NUMA nodes, memory {}", info.numa_nodes,
                        info.numa == NumaPolicy::local ? "local" : "interleaved");
  }
  return text;
}

}  // namespace memwall
