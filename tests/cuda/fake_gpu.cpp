#include "tests/cuda/fake_gpu.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "cuda/scalar_values.h"
#include "input/error.h"
#include "kernels/cpu/pack.h"

namespace memwall::cuda {
namespace {

template <class Call>
class Finally {
 public:
  explicit Finally(Call call) : call_(call) {}
  ~Finally() { call_(); }
  Finally(const Finally&) = delete;
  Finally& operator=(const Finally&) = delete;

 private:
  Call call_;
};

}  // namespace

GpuProperties fake_properties(int major, int minor) {
  GpuProperties properties;
  properties.name = "Fake GPU";
  properties.pci_id = "0000:00:00.0";
  properties.arch.major = major;
  properties.arch.minor = minor;
  properties.arch.threads_a_multiprocessor = threads_a_multiprocessor(major, minor);
  properties.multiprocessors = 4;
  properties.l2_bytes = std::int64_t{1} << 20;
  properties.total_bytes = std::int64_t{1} << 30;
  properties.sm_clock_kHz = 1'000'000;
  properties.memory_clock_kHz = 1'000'000;
  properties.memory_bus_bits = 512;
  return properties;
}

FakeGpu::FakeGpu(GpuProperties properties)
    : properties_(std::move(properties)), executor_({.arch = properties_.arch}) {}

void FakeGpu::ask_before_kernels(std::function<bool(const std::string&)> ask) {
  runner_.before = [ask = std::move(ask)](const std::type_info& kernel) { return ask(kernel_name(kernel)); };
}

void FakeGpu::forbid_in_graph(const char* what) const {
  if (capturing_) throw KernelError(std::string("a graph's capture ") + what);
}

void FakeGpu::note_launch(const std::string& name) {
  if (!capturing_) {
    launched_outside_.insert(name);
  } else if (captures_need_a_first_launch && launched_outside_.count(name) == 0) {
    throw KernelError("a graph's capture holds the first launch of " + name);
  }
}

void* FakeGpu::allocate(std::int64_t bytes) {
  forbid_in_graph("allocates");
  if (bytes > free_bytes()) throw RunError("fake.cpp:1: allocate: out of memory");
  void* memory = memory_.allocate(bytes);
  allocated_ += bytes;
  most_allocated_ = std::max(most_allocated_, allocated_);
  return memory;
}

void FakeGpu::release(void* memory) noexcept { allocated_ -= memory_.release(memory); }

void FakeGpu::upload(void* to, const void* from, std::int64_t bytes) {
  forbid_in_graph("uploads");
  memory_.check(to, static_cast<std::size_t>(bytes), "the host uploads");
  if (bytes > 0) std::memcpy(to, from, static_cast<std::size_t>(bytes));
}

void FakeGpu::download(void* to, const void* from, std::int64_t bytes) {
  forbid_in_graph("downloads");
  memory_.check(from, static_cast<std::size_t>(bytes), "the host downloads");
  if (bytes > 0) std::memcpy(to, from, static_cast<std::size_t>(bytes));
}

void FakeGpu::zero(void* memory, std::int64_t bytes) {
  forbid_in_graph("fills memory with zeros");
  memory_.check(memory, static_cast<std::size_t>(bytes), "the host fills");
  if (bytes > 0) std::memset(memory, 0, static_cast<std::size_t>(bytes));
}

void FakeGpu::launch(const Launch& asked) {
  Launch launch = asked;
  if (tamper) tamper(launch);
  ++launches_;
  const std::size_t kernels = runner_.launched();
  const std::map<std::type_index, std::int64_t> before = runner_.kernels();
  executor_.touch_only(memory_.empty() ? nullptr : &memory_);
  const Finally restore([&] { executor_.touch_only(nullptr); });
  std::visit([&](const auto& of_a_family) { run_launch(of_a_family, runner_); }, launch);
  if (runner_.launched() == kernels) throw KernelError("a launch that names no kernel");
  memory_.check_guards();
  for (const auto& [kernel, launches] : runner_.kernels()) {
    const auto known = before.find(kernel);
    if (known == before.end() || known->second < launches) note_launch(kernel.name());
  }
}

// The 8-bit types on the cards and in the shapes that cuBLASLt takes.
std::vector<GemmArm> FakeGpu::gemm_arms(const GemmProblem& problem) {
  const bool whole = problem.k % 16 == 0 && problem.w_pitch % 16 == 0;
  const bool old = properties_.arch.major * 10 + properties_.arch.minor < 89;
  const bool refused = (problem.type == ScalarType::f8_e4m3 && (old || !whole || problem.n % 16 != 0)) ||
                       (problem.type == ScalarType::i8 && !(whole && problem.n % 4 == 0));
  if (!library || refused) return {};
  return {{"fake library", 0, 0}};
}

namespace {

void store_product(ScalarType type, double value, void* y, std::int64_t at) {
  if (type == ScalarType::i8) {
    static_cast<std::int32_t*>(y)[at] = static_cast<std::int32_t>(value);
  } else if (type == ScalarType::f32) {
    static_cast<float*>(y)[at] = static_cast<float>(value);
  } else {
    const auto narrow = static_cast<float>(value);
    static_cast<std::uint16_t*>(y)[at] =
        type == ScalarType::f16 ? cpu::f32_to_f16(narrow) : cpu::f32_to_bf16(narrow);
  }
}

}  // namespace

void FakeGpu::gemm(const GemmProblem& problem, int, const GemmOperands& operands) {
  ++launches_;
  note_launch("a library's product of type " + std::to_string(static_cast<int>(problem.type)));
  const std::int64_t element = scalar_bytes(problem.type);
  const auto check = [&](const void* begin, std::int64_t bytes, const char* what) {
    memory_.check(begin, static_cast<std::size_t>(bytes), what);
  };
  const bool f8 = problem.type == ScalarType::f8_e4m3;
  const std::int64_t y_element = problem.type == ScalarType::i8 ? 4 : f8 ? 2 : element;
  check(operands.x, problem.m * problem.k * element, "the library reads");
  check(operands.w, ((problem.n - 1) * problem.w_pitch + problem.k) * element, "the library reads");
  check(operands.y, problem.m * problem.n * y_element, "the library writes");
  double scale = 1;
  if (f8) {
    for (const float* each : {operands.x_scale, operands.w_scale}) {
      check(each, sizeof *each, "the library reads");
      scale *= static_cast<double>(*each);
    }
  }
  const auto get = [&](const void* from, std::int64_t i) {
    return widen_scalar(problem.type, static_cast<const std::byte*>(from) + i * element);
  };
  for (std::int64_t m = 0; m < problem.m; ++m) {
    for (std::int64_t n = 0; n < problem.n; ++n) {
      double sum = 0;
      for (std::int64_t k = 0; k < problem.k; ++k)
        sum += get(operands.x, m * problem.k + k) * get(operands.w, n * problem.w_pitch + k);
      store_product(problem.type, sum * scale, operands.y, m * problem.n + n);
    }
  }
}

double FakeGpu::time(const std::function<void()>& launches, Timing timing) {
  const std::int64_t before = launches_;
  const Traffic start = executor_.traffic();
  {
    capturing_ = timing == Timing::graph;
    const Finally restore([&] { capturing_ = false; });
    launches();
  }
  const Traffic& end = executor_.traffic();
  const auto bytes =
      static_cast<double>(end.bytes_read - start.bytes_read + end.bytes_written - start.bytes_written);
  const double each = seconds_a_launch + (timing == Timing::stream ? seconds_alone : 0);
  return each * static_cast<double>(launches_ - before) + bytes / bytes_per_s;
}

}  // namespace memwall::cuda
