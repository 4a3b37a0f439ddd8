#include "tests/cuda/executor.h"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <random>
#include <vector>

#include "tests/cuda/block.h"

namespace memwall::cuda {
namespace {

void check_geometry(const Geometry& geometry, unsigned threads, const ArchLimits& arch) {
  if (geometry.threads != threads) throw KernelError("the launch's threads are not the kernel's");
  if (threads == 0 || threads > static_cast<unsigned>(arch.threads_a_block))
    throw KernelError("more threads a block than the architecture has");
  if (geometry.shared_bytes > static_cast<unsigned>(arch.shared_a_block))
    throw KernelError("more shared memory a block than the architecture grants");
  if (geometry.grid_x == 0 || geometry.grid_y == 0 || geometry.grid_z == 0 || geometry.grid_y > 65535 ||
      geometry.grid_z > 65535 || geometry.grid_x > 2147483647U)
    throw KernelError("a grid that CUDA does not launch");
}

std::vector<Index3> blocks_of(const Geometry& geometry, Order order, std::uint64_t seed) {
  std::vector<Index3> blocks;
  for (unsigned z = 0; z < geometry.grid_z; ++z) {
    for (unsigned y = 0; y < geometry.grid_y; ++y) {
      for (unsigned x = 0; x < geometry.grid_x; ++x) blocks.push_back({x, y, z});
    }
  }
  std::mt19937_64 random(seed);
  if (order == Order::backward) std::reverse(blocks.begin(), blocks.end());
  if (order == Order::shuffled) std::shuffle(blocks.begin(), blocks.end(), random);
  return blocks;
}

}  // namespace

std::string kernel_name(const std::type_info& kernel) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> name(
      abi::__cxa_demangle(kernel.name(), nullptr, nullptr, &status), std::free);
  return status == 0 ? name.get() : kernel.name();
}

bool registers_fit(const ArchLimits& arch, unsigned threads, int registers_a_thread) {
  constexpr unsigned kUnit = 256;  // CUDA occupancy calculator, "register allocation unit size", sm_75 on
  const unsigned a_warp = (static_cast<unsigned>(registers_a_thread) * kWarp + kUnit - 1) / kUnit * kUnit;
  const unsigned warps = (threads + kWarp - 1) / kWarp;
  return registers_a_thread <= 255 &&
         warps * a_warp <= static_cast<unsigned>(arch.registers_a_multiprocessor);
}

void Executor::check_registers(const std::string& kernel, unsigned threads) const {
  const auto found = settings_.registers.find(kernel);
  if (found != settings_.registers.end() && !registers_fit(settings_.arch, threads, found->second))
    throw KernelError("more registers a block than the architecture has: " + kernel);
}

void Executor::run(const Geometry& geometry, unsigned threads, const std::function<void(std::byte*)>& body) {
  check_geometry(geometry, threads, settings_.arch);
  Block block({.geometry = geometry,
               .body = body,
               .threads = settings_.threads,
               .seed = settings_.seed,
               .counter = settings_.count_traffic ? &counter_ : nullptr,
               .memory = memory_});
  for (const Index3& index : blocks_of(geometry, settings_.blocks, settings_.seed)) block.run(index);
}

}  // namespace memwall::cuda
