#include "cuda/quantized_input.h"

#include <algorithm>
#include <cmath>

#include "cuda/scalar_values.h"
#include "cuda/weights.h"
#include "format/checked.h"

namespace memwall::cuda {
namespace {

constexpr std::int64_t kFloat = 4;

struct Places {
  std::int64_t scale_count;
  std::int64_t partials_at;
  std::int64_t codes_at;
  std::int64_t bytes;
};

Places places(ScalarType type, std::int64_t rows, std::int64_t in) {
  Places at{};
  at.scale_count = type == ScalarType::i8 ? rows : 1;
  at.partials_at = aligned_256(checked_mul(at.scale_count, kFloat));
  at.codes_at = checked_add(at.partials_at, kMostPartials * kFloat);
  at.bytes = checked_add(at.codes_at, aligned_256(checked_mul(rows, in)));
  return at;
}

// Half a step of a code whose number is `number`: of E4M3, 3 bits behind its first, and no finer than 2^-9.
double half_step(ScalarType type, double number) {
  if (type == ScalarType::i8) return 0.5;
  constexpr int kFinest = -9;
  const int step = number == 0 ? kFinest : std::max(std::ilogb(number) - 3, kFinest);
  return std::ldexp(0.5, step);
}

}  // namespace

bool reads_quantized_x(ScalarType type) { return type == ScalarType::f8_e4m3 || type == ScalarType::i8; }

QuantizedInput::QuantizedInput(Gpu& gpu, ScalarType type, ActivationType activations, std::int64_t rows,
                               std::int64_t in)
    : gpu_(gpu),
      type_(type),
      activations_(activations),
      rows_(rows),
      in_(in),
      buffer_(gpu, bytes(type, rows, in)) {}

std::int64_t QuantizedInput::bytes(ScalarType type, std::int64_t rows, std::int64_t in) {
  return places(type, rows, in).bytes;
}

const std::uint8_t* QuantizedInput::codes() const {
  return buffer_.as<std::uint8_t>() + places(type_, rows_, in_).codes_at;
}

const float* QuantizedInput::scales() const { return buffer_.as<float>(); }

void QuantizedInput::quantize(const void* x) {
  const Places at = places(type_, rows_, in_);
  QuantizeParams params;
  params.x = x;
  params.codes = buffer_.as<std::uint8_t>() + at.codes_at;
  params.scales = buffer_.as<float>();
  params.partials = buffer_.as<float>() + at.partials_at / kFloat;
  params.rows = rows_;
  params.width = in_;
  const QuantizeRule rule = type_ == ScalarType::i8 ? QuantizeRule::i8_rows : QuantizeRule::f8_tensor;
  for (const QuantizeLaunch& launch : quantize_launches(rule, activations_, params)) gpu_.launch(launch);
}

void QuantizedInput::forget() { poison(gpu_, buffer_.data(), buffer_.bytes()); }

float QuantizedInput::scale_of(std::int64_t row) const {
  const std::int64_t at = type_ == ScalarType::i8 ? row : 0;
  return download<float>(gpu_, scales() + at, 1).front();
}

std::vector<float> QuantizedInput::row(std::int64_t row) const {
  const float scale = scale_of(row);
  std::vector<float> values;
  for (const double code : download_values(gpu_, type_, codes(), row * in_, in_))
    values.push_back(static_cast<float>(code) * scale);
  return values;
}

// Of the row, or of all x. Without its sign, a float's bits rise with its magnitude.
double QuantizedInput::largest(const void* x, std::int64_t row) const {
  const bool rows = type_ == ScalarType::i8;
  std::uint16_t most = 0;
  for (std::int64_t r = rows ? row : 0; r < (rows ? row + 1 : rows_); ++r) {
    for (const auto bits : download<std::uint16_t>(gpu_, static_cast<const std::uint16_t*>(x) + r * in_, in_))
      most = std::max(most, static_cast<std::uint16_t>(bits & 0x7FFFU));
  }
  return widen_scalar(scalar_type(activations_), reinterpret_cast<const std::byte*>(&most));
}

void QuantizedInput::compare(Comparison& comparison, const void* x, std::int64_t row) const {
  const double scale = static_cast<double>(scale_of(row));
  const double expected =
      std::max(largest(x, row) / (type_ == ScalarType::i8 ? 127 : 448), std::ldexp(1.0, -126));
  constexpr double kRounding = 1e-6;  // a few of f32's
  comparison.add(scale, expected, kRounding * expected);
  const std::vector<double> exact = download_values(gpu_, scalar_type(activations_), x, row * in_, in_);
  const std::vector<double> codes_of_row = download_values(gpu_, type_, codes(), row * in_, in_);
  for (const std::int64_t i : sample_indices(in_, 256)) {
    const double value = exact[static_cast<std::size_t>(i)] / expected;
    const double code = codes_of_row[static_cast<std::size_t>(i)];
    comparison.add(code, value, half_step(type_, value) + kRounding * std::abs(value));
  }
}

}  // namespace memwall::cuda
